//! Small messages between ranks: rank 0 speaks with each of the others.

use crate::Error;

/// A way for messages between rank 0 and the others.
pub(crate) trait Link: Send {
    /// Sends a message.
    fn send(&mut self, to: usize, message: &[u8]) -> Result<(), Error>;
    /// Waits for a message.
    fn receive(&mut self, from: usize) -> Result<Vec<u8>, Error>;
    /// Tells the others why this rank ends.
    fn fail(&mut self, reason: &str);
    /// Says that this rank is done: what follows is no loss.
    fn finish(&mut self);
    /// Says that this rank ends, though the way it exchanges numbers by may still wait for the others.
    fn leave(&mut self) {}
}

/// The connection of a rank to the others, for small messages. All ranks call the same methods in the
/// same order.
pub struct Control {
    rank: usize,
    size: usize,
    link: Box<dyn Link>,
}

impl Control {
    pub(crate) fn new(rank: usize, size: usize, link: Box<dyn Link>) -> Self {
        Self { rank, size, link }
    }

    /// The number of this rank, from 0.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// How many ranks there are.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Whether this is rank 0, which decides and writes.
    pub fn leads(&self) -> bool {
        self.rank == 0
    }

    /// Rank 0's message, at every rank.
    pub fn broadcast(&mut self, message: &[u8]) -> Result<Vec<u8>, Error> {
        if self.rank > 0 {
            return self.link.receive(0);
        }
        for rank in 1..self.size {
            self.link.send(rank, message)?;
        }
        Ok(message.to_vec())
    }

    /// Every rank's message, in their order, at rank 0; nothing at the others.
    pub fn gather(&mut self, message: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        if self.rank > 0 {
            self.link.send(0, message)?;
            return Ok(Vec::new());
        }
        let others = (1..self.size).map(|rank| self.link.receive(rank));
        std::iter::once(Ok(message.to_vec())).chain(others).collect()
    }

    /// Every rank's message, in their order, at every rank.
    pub fn all_gather(&mut self, message: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        let gathered = self.gather(message)?;
        let mut all = Vec::new();
        for message in &gathered {
            all.extend((message.len() as u64).to_le_bytes());
            all.extend(message);
        }
        let all = self.broadcast(&all)?;
        let mut rest = &all[..];
        let mut messages = Vec::new();
        while let Some((length, from)) = rest.split_first_chunk() {
            let (message, from) = from.split_at(u64::from_le_bytes(*length) as usize);
            messages.push(message.to_vec());
            rest = from;
        }
        Ok(messages)
    }

    /// Waits until all ranks are here.
    pub fn barrier(&mut self) -> Result<(), Error> {
        self.all_gather(&[]).map(drop)
    }

    /// Adds up the counts of all ranks.
    pub fn sum(&mut self, counts: &mut [u64]) -> Result<(), Error> {
        let bytes: Vec<u8> = counts.iter().flat_map(|count| count.to_le_bytes()).collect();
        for message in self.gather(&bytes)?.iter().skip(1) {
            for (count, other) in counts.iter_mut().zip(message.as_chunks().0) {
                *count += u64::from_le_bytes(*other);
            }
        }
        let bytes: Vec<u8> = counts.iter().flat_map(|count| count.to_le_bytes()).collect();
        let sums = self.broadcast(&bytes)?;
        for (count, sum) in counts.iter_mut().zip(sums.as_chunks().0) {
            *count = u64::from_le_bytes(*sum);
        }
        Ok(())
    }

    /// Tells the others why this rank ends, so that they end with the same reason.
    pub fn fail(&mut self, reason: &str) {
        self.link.fail(reason);
    }

    /// Says that this rank ends, before it lets go of what it exchanges numbers by: that may wait for the
    /// others, and they for this one. Where it takes long the process is ended.
    pub fn leave(&mut self) {
        self.link.leave();
    }

    /// Says that this rank is done. One that is dropped without it is lost to the others.
    pub fn finish(&mut self) {
        self.link.finish();
    }
}

impl std::fmt::Debug for Control {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Control(rank {} of {})", self.rank, self.size)
    }
}
