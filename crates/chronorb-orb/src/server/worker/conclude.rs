//! The end of a connection after a message, and what is noted of it.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use chronorb_giop::MessageType;
use chronorb_rt::Key;

use crate::incident::Incident;
use crate::server::connection::ServerConnection;
use crate::server::end::End;
use crate::server::lane::Lane;

/// Ends a connection where it is over.
pub(in crate::server) fn conclude(
    lane: &Lane,
    connection: &ServerConnection,
    key: Key,
    outcome: Result<(), End>,
) {
    match outcome {
        Ok(()) => {}
        Err(End::Ended) => connection.set_ended(),
        Err(End::Gone) => {
            if !connection.transport().is_established() {
                note_handshake(lane, connection);
            }
            lane.end(key);
        }
        Err(End::Late) => {
            lane.note_late(connection);
            lane.end(key);
        }
        Err(End::Malformed) => {
            let incident = Incident::MalformedMessage;
            lane.incidents.note(incident, connection, 0);
            connection.say_goodbye(MessageType::MessageError);
            lane.end(key);
        }
    }
    if connection.is_over() {
        lane.end(key);
    }
}

/// Says why a connection ended before its two sides agreed.
#[cold]
fn note_handshake(lane: &Lane, connection: &ServerConnection) {
    let incident = Incident::FailedHandshake;
    match connection.transport().problem() {
        Some(problem) => lane.incidents.tell(incident, connection, 0, &problem),
        None => lane.incidents.note(incident, connection, 0),
    }
}

/// Says that code of the application panicked outside of an operation.
#[cold]
#[inline(never)]
pub(super) fn note_panic(lane: &Lane, key: Key) {
    let incident = Incident::PanickedApplication;
    match lane.connections.get(key) {
        Some(connection) => lane.incidents.note(incident, &*connection, 0),
        None => lane.incidents.note(incident, &"", 0),
    }
}
