//! Small messages between rank 0 and each of the others.

use crate::Error;

/// Carries messages between rank 0 and the others.
pub(crate) trait Link: Send {
    /// Sends a message.
    fn send(&mut self, to: usize, message: &[u8]) -> Result<(), Error>;
    /// Waits for a message.
    fn receive(&mut self, from: usize) -> Result<Vec<u8>, Error>;
    /// Tells the others why this rank ends.
    fn fail(&mut self, reason: &str);
    /// Marks this rank as finished: its end is not a loss.
    fn finish(&mut self);
    /// Announces that this rank ends although its exchange of numbers may still wait for others.
    fn leave(&mut self) {}
}

/// The connection of a rank to the others, for small messages. All ranks must call the same methods
/// in the same order.
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

    /// Whether this is rank 0, which makes decisions and writes files.
    pub fn leads(&self) -> bool {
        self.rank == 0
    }

    /// Returns rank 0's message on every rank.
    pub fn broadcast(&mut self, message: &[u8]) -> Result<Vec<u8>, Error> {
        if self.rank > 0 {
            return self.link.receive(0);
        }
        for rank in 1..self.size {
            self.link.send(rank, message)?;
        }
        Ok(message.to_vec())
    }

    /// Returns the messages of all ranks, in order of rank, on rank 0; nothing on the others.
    pub fn gather(&mut self, message: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        if self.rank > 0 {
            self.link.send(0, message)?;
            return Ok(Vec::new());
        }
        let others = (1..self.size).map(|rank| self.link.receive(rank));
        std::iter::once(Ok(message.to_vec())).chain(others).collect()
    }

    /// Returns the messages of all ranks, in order of rank, on every rank.
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

    /// Waits until all ranks have called it.
    pub fn barrier(&mut self) -> Result<(), Error> {
        self.all_gather(&[]).map(drop)
    }

    /// Replaces counts by their sums over all ranks.
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

    /// Announces that this rank ends, before it releases what it exchanges numbers through: that
    /// may block until the others end, and they may wait for this one. If it takes too long, the
    /// process is ended.
    pub fn leave(&mut self) {
        self.link.leave();
    }

    /// Marks this rank as finished. A rank dropped without it is a failure to the others.
    pub fn finish(&mut self) {
        self.link.finish();
    }
}

impl std::fmt::Debug for Control {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Control(rank {} of {})", self.rank, self.size)
    }
}
