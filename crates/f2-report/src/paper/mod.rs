//! The numbers printed in the paper, for comparison with ours.

use std::collections::BTreeMap;

use f2_metrics::Metrics;
use serde::{Deserialize, Serialize};

use crate::record::{HumanRecord, ResultRecord};

/// A set of texts the paper evaluates on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PaperSet {
    /// Wikitext-103: English articles, top-k sampling with k = 3.
    Wikitext103,
    /// Melo-Lyrics: Korean songs, top-k sampling with k = 20.
    Lyrics,
}

impl PaperSet {
    /// Its name in the paper.
    pub fn title(self) -> &'static str {
        match self {
            Self::Wikitext103 => "Wikitext-103",
            Self::Lyrics => "Melo-Lyrics",
        }
    }

    fn tables(self, tables: &Tables) -> &SetTables {
        match self {
            Self::Wikitext103 => &tables.sets.wikitext103,
            Self::Lyrics => &tables.sets.lyrics,
        }
    }

    /// The k of the paper's main table.
    pub fn main_k(self) -> usize {
        self.tables(&tables()).k
    }

    /// The table of top-k sampling, in the paper's order of models.
    pub fn top_k(self, k: usize) -> Vec<ResultRecord> {
        let all = tables();
        let set = self.tables(&all);
        set.top_k.get(&k.to_string()).map_or_else(Vec::new, |rows| records(rows, &set.human))
    }

    /// The table of greedy decoding.
    pub fn greedy(self) -> Vec<ResultRecord> {
        let all = tables();
        let set = self.tables(&all);
        records(&set.greedy, &set.human)
    }

    /// Matches of the greedy table: winner, loser and the points of each.
    pub fn pairwise(self) -> Vec<(String, String, usize, usize)> {
        self.tables(&tables()).pairwise_greedy.clone()
    }

    /// The documents, and the tokens, of the training, validation and test split.
    pub fn sizes(self) -> ([u64; 3], [u64; 3]) {
        let datasets = tables().datasets;
        let sizes = match self {
            Self::Wikitext103 => datasets.wikitext103,
            Self::Lyrics => datasets.lyrics,
        };
        (sizes.documents, sizes.tokens)
    }

    /// The paper's tables of hyperparameters: name and value of each row.
    pub fn hyperparameters(self) -> Vec<(String, f64)> {
        let value = |(name, english, lyrics)| match self {
            Self::Wikitext103 => (name, english),
            Self::Lyrics => (name, lyrics),
        };
        tables().hyperparameters.into_iter().map(value).collect()
    }
}

/// The paper's table of decoupled decoding (lyrics, k = 20, bigrams): whether decoupling is on, and
/// the result.
pub fn decoupling() -> Vec<(bool, ResultRecord)> {
    let row = |(name, decoupled, kld, msj, sb, uniq): (String, bool, f64, f64, f64, f64)| {
        let human = tables().sets.lyrics.human;
        let record = ResultRecord {
            name,
            convention: "paper".to_owned(),
            metrics: Metrics { kld: Some(kld), ..bigrams(msj, sb, uniq) },
            human: Some(human_record(&human)),
            ..ResultRecord::default()
        };
        (decoupled, record)
    };
    tables().decoupling.into_iter().map(row).collect()
}

/// The paper's table of transfer learning (lyrics, bigrams).
pub fn transfer() -> Vec<ResultRecord> {
    let row = |(name, ppl, msj, sb, uniq): (String, f64, f64, f64, f64)| {
        let human = tables().sets.lyrics.human;
        ResultRecord {
            name,
            convention: "paper".to_owned(),
            metrics: Metrics { ppl: Some(ppl), ..bigrams(msj, sb, uniq) },
            human: Some(human_record(&human)),
            ..ResultRecord::default()
        }
    };
    tables().transfer.into_iter().map(row).collect()
}

/// The paper's ranking over both sets, greedy: place, model, matches won and lost.
pub fn ranking() -> Vec<(usize, String, usize, usize)> {
    tables().ranking_greedy
}

/// The paper's samples for Wikitext-103: the article, and the share of very rare tokens in each
/// model's text, in percent.
pub fn very_rare() -> Vec<(String, BTreeMap<String, f64>)> {
    tables().very_rare_percent
}

/// A number from the text of the paper, by our name for the claim.
pub fn claim(name: &str) -> Option<String> {
    tables().claims.remove(name)
}

/// A row in the order of the paper's columns; Human has no perplexity, KLD or MS-Jaccard.
type Numbers = [Option<f64>; 13];

#[derive(Deserialize)]
struct Tables {
    sets: Sets,
    ranking_greedy: Vec<(usize, String, usize, usize)>,
    decoupling: Vec<(String, bool, f64, f64, f64, f64)>,
    transfer: Vec<(String, f64, f64, f64, f64)>,
    datasets: Datasets,
    hyperparameters: Vec<(String, f64, f64)>,
    very_rare_percent: Vec<(String, BTreeMap<String, f64>)>,
    claims: BTreeMap<String, String>,
}

#[derive(Deserialize)]
struct Sets {
    wikitext103: SetTables,
    lyrics: SetTables,
}

#[derive(Deserialize)]
struct SetTables {
    k: usize,
    human: Numbers,
    greedy: BTreeMap<String, Numbers>,
    top_k: BTreeMap<String, BTreeMap<String, Numbers>>,
    pairwise_greedy: Vec<(String, String, usize, usize)>,
}

#[derive(Deserialize)]
struct Datasets {
    wikitext103: Sizes,
    lyrics: Sizes,
}

#[derive(Deserialize)]
struct Sizes {
    documents: [u64; 3],
    tokens: [u64; 3],
}

fn tables() -> Tables {
    serde_json::from_str(include_str!("tables.json")).expect("the file comes with the program")
}

/// The models in the order of the paper's tables.
pub(crate) const MODELS: [&str; 5] = ["MLE", "FACE", "UL-token", "UL-token+seq", "F²-Softmax"];

fn records(rows: &BTreeMap<String, Numbers>, human: &Numbers) -> Vec<ResultRecord> {
    MODELS.iter().filter_map(|model| Some(record(model, rows.get(*model)?, human))).collect()
}

fn record(name: &str, row: &Numbers, human: &Numbers) -> ResultRecord {
    ResultRecord {
        name: name.to_owned(),
        convention: "paper".to_owned(),
        metrics: metrics(row),
        human: Some(human_record(human)),
        ..ResultRecord::default()
    }
}

fn human_record(row: &Numbers) -> HumanRecord {
    let metrics = Metrics { ms_jaccard: Vec::new(), ..metrics(row) };
    HumanRecord { metrics, ..HumanRecord::default() }
}

fn metrics(row: &Numbers) -> Metrics {
    Metrics {
        ppl: row[0],
        kld: row[1],
        ms_jaccard: fractions(&row[2..5]),
        self_bleu: fractions(&row[5..8]),
        distinct: fractions(&row[8..11]),
        rep: row[11].map(|percent| percent / 100.0),
        uniq: row[12].map(thousands),
        ..Metrics::default()
    }
}

/// The columns of the small tables: MS-Jaccard-2, Self-BLEU-2 and Uniq.
fn bigrams(ms_jaccard: f64, self_bleu: f64, uniq: f64) -> Metrics {
    Metrics {
        ms_jaccard: vec![None, Some(ms_jaccard / 100.0)],
        self_bleu: vec![None, Some(self_bleu / 100.0)],
        uniq: Some(thousands(uniq)),
        ..Metrics::default()
    }
}

fn fractions(percents: &[Option<f64>]) -> Vec<Option<f64>> {
    percents.iter().map(|percent| percent.map(|percent| percent / 100.0)).collect()
}

fn thousands(value: f64) -> f64 {
    (value * 1000.0).round()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_main_tables_are_those_of_their_k() {
        let english = PaperSet::Wikitext103;
        let rows = english.top_k(english.main_k());
        let names: Vec<&str> = rows.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, MODELS);
        let f2 = &rows[4].metrics;
        assert_eq!((f2.ppl, f2.kld, f2.uniq), (Some(25.6), Some(0.62), Some(15_700.0)));
        assert_eq!(PaperSet::Lyrics.top_k(20)[4].metrics.kld, Some(0.13));
        assert_eq!(PaperSet::Lyrics.top_k(4), []);
    }

    #[test]
    fn the_paper_plays_its_matches_as_it_says() {
        for set in [PaperSet::Wikitext103, PaperSet::Lyrics] {
            assert_eq!((set.greedy().len(), set.pairwise().len()), (5, 10));
        }
        assert_eq!(PaperSet::Wikitext103.hyperparameters().len(), 21);
        assert_eq!(PaperSet::Lyrics.hyperparameters()[20], ("top-k".to_owned(), 20.0));
        assert_eq!(very_rare()[0].1["F²-Softmax"], 9.3);
        assert_eq!(ranking()[0], (1, "F²-Softmax".to_owned(), 7, 1));
        assert_eq!(decoupling()[1].1.metrics.kld, Some(0.31));
        assert_eq!(transfer()[1].metrics.ppl, Some(9.8));
    }
}
