//! The shards of a batch, their ranks, and the tree along which their gradients are added.

use std::ops::Range;

/// The shards of a batch, distributed over ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shards {
    /// How many there are.
    pub count: usize,
    /// How many ranks share them; no more than there are shards.
    pub ranks: usize,
}

impl Shards {
    /// The fewest equal shards of a batch of `rows` that give every rank one; `None` if there are
    /// more ranks than rows.
    pub fn fewest(rows: usize, ranks: usize) -> Option<usize> {
        (ranks..=rows).find(|count| rows.is_multiple_of(*count))
    }

    /// The shards a rank computes.
    pub fn of_rank(self, rank: usize) -> Range<usize> {
        rank * self.count / self.ranks..(rank + 1) * self.count / self.ranks
    }

    /// The most shards any rank has.
    pub fn most(self) -> usize {
        self.count.div_ceil(self.ranks)
    }

    /// Whether two neighbouring ranges of shards are the two halves of a node of the tree. The left
    /// half of a node of n shards has the largest power of two below n.
    pub(super) fn are_halves(self, left: &Range<usize>, right: &Range<usize>) -> bool {
        let mut node = 0..self.count;
        while node.len() > 1 {
            let middle = node.start + (node.len().next_power_of_two() / 2);
            if (&node.start, middle, &node.end) == (&left.start, right.start, &right.end) {
                return left.end == middle;
            }
            node = if right.end <= middle { node.start..middle } else { middle..node.end };
        }
        false
    }

    /// The nodes of the tree that a rank's shards add up to.
    pub(super) fn nodes(self, rank: usize) -> Vec<Range<usize>> {
        let mut nodes = Vec::new();
        for shard in self.of_rank(rank) {
            nodes.push(shard..shard + 1);
            while self.joined(&mut nodes) {}
        }
        nodes
    }

    /// Joins the last two nodes if they are halves of one; returns whether they are.
    pub(super) fn joined(self, nodes: &mut Vec<Range<usize>>) -> bool {
        let [.., left, right] = &nodes[..] else { return false };
        if !self.are_halves(left, right) {
            return false;
        }
        let node = left.start..right.end;
        nodes.truncate(nodes.len() - 2);
        nodes.push(node);
        true
    }

    /// How many nodes each rank has.
    pub(in crate::train) fn parts(self) -> Vec<usize> {
        (0..self.ranks).map(|rank| self.nodes(rank).len()).collect()
    }

    /// The additions that sum the nodes of all ranks, in order: the row that is added to, and the
    /// one that is added. The sum is in row 0.
    pub(super) fn additions(self) -> Vec<(usize, usize)> {
        let all = (0..self.ranks).flat_map(|rank| self.nodes(rank));
        let (mut nodes, mut rows, mut additions) = (Vec::new(), Vec::new(), Vec::new());
        for (row, node) in all.enumerate() {
            nodes.push(node);
            rows.push(row);
            while self.joined(&mut nodes) {
                let added = rows.pop().expect("a row to a node");
                additions.push((rows[rows.len() - 1], added));
            }
        }
        additions
    }

    /// How many sums a rank keeps beside the gradient in progress.
    pub(super) fn kept(self, rank: usize) -> usize {
        let (mut nodes, mut most) = (Vec::new(), 0);
        let own = self.of_rank(rank);
        for shard in own.clone() {
            nodes.push(shard..shard + 1);
            // The last gradient stays in the network's buffer, unless it is added to a kept sum.
            let joined = self.joined(&mut nodes);
            while self.joined(&mut nodes) {}
            if joined || shard + 1 < own.end {
                most = most.max(nodes.len());
            }
        }
        most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sum of a node as an expression, by definition.
    fn defined(node: Range<usize>) -> String {
        if node.len() == 1 {
            return node.start.to_string();
        }
        let mut power = 1;
        while 2 * power < node.len() {
            power *= 2;
        }
        let middle = node.start + power;
        format!("({}+{})", defined(node.start..middle), defined(middle..node.end))
    }

    #[test]
    fn any_number_of_ranks_adds_along_the_same_tree() {
        for count in 1..=24 {
            let expected = defined(0..count);
            for ranks in 1..=count {
                let shards = Shards { count, ranks };
                let all = (0..ranks).flat_map(|rank| shards.nodes(rank));
                let mut rows: Vec<String> = all.map(defined).collect();
                for (to, from) in shards.additions() {
                    rows[to] = format!("({}+{})", rows[to], rows[from]);
                }
                assert_eq!(rows[0], expected, "{count} shards, {ranks} ranks");
            }
        }
    }

    #[test]
    fn every_rank_has_a_share() {
        let shards = Shards { count: 4, ranks: 3 };
        assert_eq!([0, 1, 2].map(|rank| shards.of_rank(rank)), [0..1, 1..2, 2..4]);
        assert_eq!((shards.most(), shards.parts()), (2, vec![1, 1, 1]));
        assert_eq!(Shards { count: 6, ranks: 4 }.parts(), [1, 2, 1, 1]);
        assert_eq!([0, 1].map(|rank| Shards { count: 8, ranks: 2 }.kept(rank)), [2, 2]);
        assert_eq!(Shards { count: 3, ranks: 3 }.kept(1), 0);
    }

    #[test]
    fn the_fewest_shards_divide_the_batch() {
        let fewest = [(16, 3), (16, 16), (12, 5), (7, 2), (4, 1), (4, 5)];
        let fewest = fewest.map(|(rows, ranks)| Shards::fewest(rows, ranks));
        assert_eq!(fewest, [Some(4), Some(16), Some(6), Some(7), Some(1), None]);
    }
}
