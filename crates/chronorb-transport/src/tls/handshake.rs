//! Agreeing on keys, as the side that connects.

use chronorb_rt::Deadline;

use super::connection::TlsConnection;
use super::outgoing::Way;
use crate::IoError;

/// Two sides could not agree.
pub(super) enum HandshakeError {
    /// One side does not trust the other, or they have no version or cipher in common.
    Refused(rustls::Error),
    /// The connection failed first.
    Io(IoError),
}

impl From<IoError> for HandshakeError {
    fn from(error: IoError) -> Self {
        Self::Io(error)
    }
}

impl TlsConnection {
    /// Sends and receives until both sides have the keys.
    pub(super) fn shake_hands(&mut self, deadline: Deadline) -> Result<(), HandshakeError> {
        let carrier = &*self.carrier;
        let incoming = self.incoming.get_mut();
        let outgoing = self.outgoing.get_mut();
        loop {
            outgoing.send_own(&self.session, carrier, Way::Until(deadline))?;
            if !self.session.lock().is_handshaking() {
                self.set_established();
                return Ok(());
            }
            incoming.fill(|space| carrier.recv(space, deadline))?;
            while !incoming.is_empty() {
                let fed = incoming.feed(&mut self.session.lock());
                if let Err(error) = fed {
                    // The peer shall know why, if it still listens.
                    let _ = outgoing.send_own(&self.session, carrier, Way::Now);
                    return Err(HandshakeError::Refused(error));
                }
            }
        }
    }
}
