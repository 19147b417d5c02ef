//! Ranks that are threads of one process.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration;

use crate::control::{Control, Link};
use crate::state::State;
use crate::{Error, Transport};

/// How often a waiting thread checks whether another failed.
const POLL: Duration = Duration::from_millis(50);

/// The connections of `size` ranks that are threads of this process.
pub fn threads(size: usize) -> Vec<(Control, ThreadTransport)> {
    let state = Arc::new(State::default());
    let messages = mesh(size, &state).into_iter().enumerate();
    let controls = messages.map(|(rank, link)| Control::new(rank, size, Box::new(link)));
    controls.zip(mesh(size, &state).into_iter().map(ThreadTransport)).collect()
}

/// A channel from every rank to every rank.
struct Mesh<T> {
    rank: usize,
    to: Vec<Sender<T>>,
    from: Vec<Receiver<T>>,
    state: Arc<State>,
}

fn mesh<T>(size: usize, state: &Arc<State>) -> Vec<Mesh<T>> {
    let empty = |rank| Mesh { rank, to: Vec::new(), from: Vec::new(), state: Arc::clone(state) };
    let mut all: Vec<Mesh<T>> = (0..size).map(empty).collect();
    for from in 0..size {
        for to in 0..size {
            let (sender, receiver) = channel();
            all[from].to.push(sender);
            all[to].from.push(receiver);
        }
    }
    all
}

impl<T> Mesh<T> {
    fn put(&self, to: usize, message: T) -> Result<(), Error> {
        self.to[to].send(message).map_err(|_| self.lost(to))
    }

    fn take(&self, from: usize) -> Result<T, Error> {
        loop {
            match self.from[from].recv_timeout(POLL) {
                Ok(message) => return Ok(message),
                Err(RecvTimeoutError::Disconnected) => return Err(self.lost(from)),
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(failure) = self.state.failure() {
                        return Err(failure);
                    }
                }
            }
        }
    }

    /// Reports a lost rank, or the first failure, which may be why that rank ended.
    fn lost(&self, rank: usize) -> Error {
        let gone = Error::Lost { rank, reason: "its thread has ended".to_owned() };
        self.state.record(gone.clone());
        self.state.failure().unwrap_or(gone)
    }
}

impl Link for Mesh<Vec<u8>> {
    fn send(&mut self, to: usize, message: &[u8]) -> Result<(), Error> {
        self.put(to, message.to_vec())
    }

    fn receive(&mut self, from: usize) -> Result<Vec<u8>, Error> {
        self.take(from)
    }

    fn fail(&mut self, reason: &str) {
        self.state.record(Error::Failed { rank: self.rank, reason: reason.to_owned() });
    }

    /// Messages arrive even after the sending thread has ended.
    fn finish(&mut self) {}
}

/// Carries numbers between threads.
pub struct ThreadTransport(Mesh<Vec<f32>>);

impl Transport for ThreadTransport {
    fn rank(&self) -> usize {
        self.0.rank
    }

    fn exchange(
        &mut self,
        sends: &[(usize, &[f32])],
        receives: &mut [(usize, &mut [f32])],
    ) -> Result<(), Error> {
        for (rank, floats) in sends {
            self.0.put(*rank, floats.to_vec())?;
        }
        for (rank, floats) in receives {
            floats.copy_from_slice(&self.0.take(*rank)?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// Runs `body` as each of three ranks.
    fn three<R: Send>(body: impl Fn(Control, ThreadTransport) -> R + Sync) -> Vec<R> {
        thread::scope(|scope| {
            let started: Vec<_> = threads(3)
                .into_iter()
                .map(|(control, transport)| scope.spawn(|| body(control, transport)))
                .collect();
            started.into_iter().map(|rank| rank.join().unwrap()).collect()
        })
    }

    #[test]
    fn messages_reach_all() {
        let results = three(|mut control, _| {
            let own = vec![control.rank() as u8; control.rank()];
            let all = control.all_gather(&own).unwrap();
            let first = control.broadcast(&[7 + control.rank() as u8]).unwrap();
            let mut counts = [control.rank() as u64, 1 << 60];
            control.sum(&mut counts).unwrap();
            control.barrier().unwrap();
            (all, first, counts)
        });
        let expected = (vec![vec![], vec![1], vec![2, 2]], vec![7], [3, 3 << 60]);
        assert!(results.iter().all(|result| *result == expected), "{results:?}");
    }

    #[test]
    fn the_failure_of_one_reaches_the_others_by_name() {
        let results = three(|mut control, _| {
            if control.rank() == 2 {
                control.fail("its disk is full");
                return Ok(());
            }
            control.barrier()
        });
        let expected = Error::Failed { rank: 2, reason: "its disk is full".to_owned() };
        assert_eq!(results, [Err(expected.clone()), Err(expected), Ok(())]);
    }

    #[test]
    fn a_thread_that_ends_is_missed() {
        let results = three(|mut control, mut transport| match control.rank() {
            1 => Ok(()),
            0 => control.barrier(),
            _ => transport.exchange(&[], &mut [(1, &mut [0.0])]),
        });
        assert!(matches!(results[0], Err(Error::Lost { rank: 1, .. })), "{results:?}");
        assert!(matches!(results[2], Err(Error::Lost { rank: 1, .. })), "{results:?}");
    }
}
