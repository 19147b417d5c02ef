//! The suffix automaton of a set of texts, to find their substrings in another text.

/// The state of the empty string.
const ROOT: u32 = 0;
/// No state, and the end of a list.
const NONE: u32 = u32::MAX;

/// The smallest automaton that accepts every substring of some texts (Blumer et al., 1985).
///
/// A state represents substrings that end at the same positions, each a suffix of the longest one.
/// Its link leads to the state of the next shorter suffix.
#[derive(Debug)]
pub(crate) struct SuffixAutomaton {
    /// The length of each state's longest substring, in tokens.
    lengths: Vec<u32>,
    links: Vec<u32>,
    steps: Steps,
    /// The tokens with a transition out of each state, as a linked list from the newest entry to
    /// the oldest: its head, and each token with the next older entry.
    newest: Vec<u32>,
    leaving: Vec<(u32, u32)>,
}

/// The position in the automaton while another text is read: the longest suffix of the tokens read
/// so far that is a substring of the automaton's texts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    pub(crate) state: u32,
    pub(crate) length: u32,
}

impl SuffixAutomaton {
    pub(crate) fn new<'a>(texts: impl Iterator<Item = &'a [u32]>) -> Self {
        let mut automaton = Self {
            lengths: vec![0],
            links: vec![NONE],
            steps: Steps::new(),
            newest: vec![NONE],
            leaving: Vec::new(),
        };
        for text in texts {
            text.iter().fold(ROOT, |last, token| automaton.extend(last, *token));
        }
        automaton
    }

    pub(crate) fn states(&self) -> usize {
        self.lengths.len()
    }

    /// The states after each token of one of its own texts.
    pub(crate) fn walk(&self, text: &[u32]) -> impl Iterator<Item = u32> {
        text.iter().scan(ROOT, |state, token| {
            *state = self.steps.get(*state, *token).expect("one of its own texts");
            Some(*state)
        })
    }

    /// Reads one more token of another text.
    pub(crate) fn read(&self, mut at: Reading, token: u32) -> Reading {
        loop {
            if let Some(state) = self.steps.get(at.state, token) {
                return Reading { state, length: at.length + 1 };
            }
            if at.state == ROOT {
                return Reading::default();
            }
            let state = self.links[at.state as usize];
            at = Reading { state, length: self.lengths[state as usize] };
        }
    }

    /// From the longest match that ended in each state (0 for none), computes the longest matched
    /// suffix of each state's substrings.
    pub(crate) fn longest_suffixes(&self, mut matched: Vec<u32>) -> Vec<u32> {
        let mut states: Vec<u32> = (1..self.states() as u32).collect();
        states.sort_unstable_by_key(|state| self.lengths[*state as usize]);
        // All suffixes of a match matched as well.
        for &state in states.iter().rev() {
            let link = self.links[state as usize] as usize;
            if matched[state as usize] > 0 {
                matched[link] = self.lengths[link];
            }
        }
        for &state in &states {
            if matched[state as usize] == 0 {
                matched[state as usize] = matched[self.links[state as usize] as usize];
            }
        }
        matched
    }

    /// Appends a token to a text whose state is `last`, and returns the new state.
    fn extend(&mut self, last: u32, token: u32) -> u32 {
        let length = self.lengths[last as usize] + 1;
        if let Some(next) = self.steps.get(last, token) {
            let whole = self.lengths[next as usize] == length;
            return if whole { next } else { self.split(last, token, next) };
        }
        let new = self.state(length, ROOT);
        let mut state = last;
        while state != NONE && self.steps.get(state, token).is_none() {
            self.lead(state, token, new);
            state = self.links[state as usize];
        }
        if state != NONE {
            let next = self.steps.get(state, token).expect("the loop ended at one");
            let whole = self.lengths[next as usize] == self.lengths[state as usize] + 1;
            let link = if whole { next } else { self.split(state, token, next) };
            self.links[new as usize] = link;
        }
        new
    }

    /// Splits off the shorter substrings of `next`, those reached from `state` by `token`, into a
    /// state of their own.
    fn split(&mut self, mut state: u32, token: u32, next: u32) -> u32 {
        let copy = self.state(self.lengths[state as usize] + 1, self.links[next as usize]);
        let mut entry = self.newest[next as usize];
        while entry != NONE {
            let (token, older) = self.leaving[entry as usize];
            let target = self.steps.get(next, token).expect("a token that leads out of it");
            self.lead(copy, token, target);
            entry = older;
        }
        self.links[next as usize] = copy;
        while state != NONE && self.steps.get(state, token) == Some(next) {
            self.steps.set(state, token, copy);
            state = self.links[state as usize];
        }
        copy
    }

    fn state(&mut self, length: u32, link: u32) -> u32 {
        self.lengths.push(length);
        self.links.push(link);
        self.newest.push(NONE);
        self.states() as u32 - 1
    }

    /// Adds a transition.
    fn lead(&mut self, state: u32, token: u32, target: u32) {
        self.steps.set(state, token, target);
        let newest = &mut self.newest[state as usize];
        self.leaving.push((token, *newest));
        *newest = self.leaving.len() as u32 - 1;
    }
}

/// The transitions of an automaton: a hash table with open addressing.
#[derive(Debug)]
struct Steps {
    /// State and token, and the state they lead to. No transition leads to the root, which marks a
    /// free slot.
    table: Vec<(u64, u32)>,
    used: usize,
}

impl Steps {
    fn new() -> Self {
        Self { table: vec![(0, ROOT); 1 << 10], used: 0 }
    }

    fn get(&self, state: u32, token: u32) -> Option<u32> {
        let (_, target) = self.table[self.place(key(state, token))];
        (target != ROOT).then_some(target)
    }

    fn set(&mut self, state: u32, token: u32, target: u32) {
        let key = key(state, token);
        let place = self.place(key);
        self.used += usize::from(self.table[place].1 == ROOT);
        self.table[place] = (key, target);
        if 2 * self.used > self.table.len() {
            let larger = vec![(0, ROOT); 2 * self.table.len()];
            for (key, target) in std::mem::replace(&mut self.table, larger) {
                if target != ROOT {
                    let place = self.place(key);
                    self.table[place] = (key, target);
                }
            }
        }
    }

    /// The slot of a key, or the free slot where it would be inserted.
    fn place(&self, key: u64) -> usize {
        let mask = self.table.len() - 1;
        let mixed = (key ^ (key >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut place = (mixed >> 32) as usize & mask;
        while self.table[place].1 != ROOT && self.table[place].0 != key {
            place = (place + 1) & mask;
        }
        place
    }
}

fn key(state: u32, token: u32) -> u64 {
    u64::from(state) << 32 | u64::from(token)
}
