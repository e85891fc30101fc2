//! Connections with several owners, for example one that only ends them.

use std::io::{self, IoSlice};
use std::sync::Arc;
use std::time::Duration;

use crate::{Carriage, Connection, Deadline, IoError, Remote, SendError, SocketOptions};

impl Connection for Arc<dyn Connection> {
    fn carriage(&self) -> Carriage {
        (**self).carriage()
    }

    fn problem(&self) -> Option<String> {
        (**self).problem()
    }

    fn is_established(&self) -> bool {
        (**self).is_established()
    }

    fn try_recv(&self, room: &mut [u8]) -> Result<usize, IoError> {
        (**self).try_recv(room)
    }

    fn look(&self, room: &mut [u8]) -> Result<usize, IoError> {
        (**self).look(room)
    }

    fn try_send(&self, octets: &[u8]) -> Result<usize, IoError> {
        (**self).try_send(octets)
    }

    fn try_send_both(&self, first: &[u8], second: &[u8]) -> Result<usize, IoError> {
        (**self).try_send_both(first, second)
    }

    fn recv(&self, room: &mut [u8], deadline: Deadline) -> Result<usize, IoError> {
        (**self).recv(room, deadline)
    }

    fn recv_after_send(
        &self,
        room: &mut [u8],
        deadline: Deadline,
        whole: u64,
    ) -> Result<usize, IoError> {
        (**self).recv_after_send(room, deadline, whole)
    }

    fn recv_until_interrupted(
        &self,
        room: &mut [u8],
        limit: Option<Duration>,
    ) -> Result<Option<usize>, IoError> {
        (**self).recv_until_interrupted(room, limit)
    }

    fn interrupt(&self) {
        (**self).interrupt();
    }

    fn resume(&self) {
        (**self).resume();
    }

    fn send_all(&self, octets: &[u8], deadline: Deadline) -> Result<(), SendError> {
        (**self).send_all(octets, deadline)
    }

    fn send_both(&self, first: &[u8], second: &[u8], deadline: Deadline) -> Result<(), SendError> {
        (**self).send_both(first, second, deadline)
    }

    fn try_send_slices(&self, slices: &[IoSlice<'_>], sent: usize) -> Result<usize, IoError> {
        (**self).try_send_slices(slices, sent)
    }

    fn is_stale(&self) -> bool {
        (**self).is_stale()
    }

    fn shutdown(&self) {
        (**self).shutdown();
    }

    fn abort(&self) {
        (**self).abort();
    }

    fn options(&self) -> io::Result<SocketOptions> {
        (**self).options()
    }

    fn peer(&self) -> String {
        (**self).peer()
    }

    fn remote(&self) -> Remote {
        (**self).remote()
    }

    fn peer_certificate(&self) -> Option<Vec<u8>> {
        (**self).peer_certificate()
    }
}
