//! A consumer that is no ORB.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

/// The end of a connection of the channel to a consumer that knows GIOP 1.2 alone.
pub(crate) struct RawConsumer(TcpStream);

impl RawConsumer {
    /// Accepts the connection of the channel.
    pub(crate) fn accept(listener: &TcpListener) -> Self {
        Self(listener.accept().expect("the channel connects").0)
    }

    /// Reads a message.
    pub(crate) fn read(&mut self) -> Vec<u8> {
        let mut message = vec![0; 12];
        self.0.read_exact(&mut message).expect("a header");
        let size = message[8..].try_into().map(u32::from_ne_bytes);
        let mut rest = vec![0; size.expect("four octets") as usize];
        self.0.read_exact(&mut rest).expect("a body");
        message.extend(rest);
        message
    }

    /// Reads the question of the channel, and denies that the consumer is an object of another one.
    pub(crate) fn answer(&mut self) {
        let question = self.read();
        let is_question = question.windows(6).any(|octets| octets == b"_is_a\0");
        assert!(is_question, "it asks before it pushes");
        // A reply of 13 octets: the id, no exception, no contexts, and the result.
        let mut reply = question[..6].to_vec();
        reply.extend([question[6] & 1, 1]);
        reply.extend(13_u32.to_ne_bytes());
        reply.extend(&question[12..16]);
        reply.extend([0; 9]);
        self.0.write_all(&reply).expect("the channel reads");
    }

    /// Answers that the object of a locate request is here.
    pub(crate) fn answer_locate(&mut self, question: &[u8]) {
        let mut reply = question[..7].to_vec();
        reply.push(4);
        reply.extend(8_u32.to_ne_bytes());
        reply.extend(&question[12..16]);
        reply.extend(1_u32.to_ne_bytes());
        self.0.write_all(&reply).expect("the channel reads");
    }
}
