//! The number of shards of a run: as set, or from the number of ranks it begins with.

use super::Shards;
use crate::Error;
use crate::config::TrainConfig;

/// Sets the number of shards of a new run on `ranks` ranks. With a single rank it may stay 0, which
/// means one shard.
pub fn settle_shards(config: &mut TrainConfig, ranks: usize) -> Result<(), Error> {
    let rows = config.batch.size;
    match config.batch.shards {
        0 if ranks == 1 => return Ok(()),
        0 => config.batch.shards = fewest(rows, ranks)?,
        shards if shards < ranks => {
            let (key, place) = ("batch.shards".to_owned(), "given".to_owned());
            let reason = format!("{shards} shards are too few for {ranks} ranks");
            return Err(Error::ConfigValue { key, place, reason });
        }
        _ => {}
    }
    check(config)
}

/// The settings of a session that resumes a run on `ranks` ranks: the run's own, with more shards
/// if it has fewer than ranks.
pub(in crate::train) fn session_shards(
    config: &TrainConfig,
    ranks: usize,
) -> Result<TrainConfig, Error> {
    let mut config = config.clone();
    if config.batch.shards.max(1) < ranks {
        config.batch.shards = fewest(config.batch.size, ranks)?;
    }
    check(&config)?;
    Ok(config)
}

fn fewest(rows: usize, ranks: usize) -> Result<usize, Error> {
    Shards::fewest(rows, ranks).ok_or(Error::TooManyRanks { ranks, rows })
}

fn check(config: &TrainConfig) -> Result<(), Error> {
    let (rows, micro) = (config.batch.shard_size(), config.batch.micro_size());
    if rows.is_multiple_of(micro) {
        return Ok(());
    }
    Err(Error::MicroBatch { micro, shards: config.batch.shards, rows })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(size: usize, shards: usize, micro: usize) -> TrainConfig {
        let mut config = TrainConfig::default();
        (config.batch.size, config.batch.shards, config.batch.micro) = (size, shards, micro);
        config
    }

    fn settled(size: usize, shards: usize, micro: usize, ranks: usize) -> Result<usize, String> {
        let mut config = config(size, shards, micro);
        let settled = settle_shards(&mut config, ranks).map_err(|error| error.to_string());
        settled.map(|()| config.batch.shards)
    }

    #[test]
    fn a_run_has_a_shard_for_every_rank() {
        assert_eq!(settled(16, 0, 0, 1), Ok(0));
        assert_eq!(settled(16, 0, 0, 3), Ok(4));
        assert_eq!(settled(16, 8, 2, 3), Ok(8));
        let refused = settled(4, 0, 0, 5).unwrap_err();
        assert_eq!(refused, "5 ranks are too many: a step has 4 windows to share");
        assert!(settled(16, 2, 0, 4).unwrap_err().contains("too few"));
        let refused = settled(16, 0, 8, 4).unwrap_err();
        assert!(refused.contains("batch.micro"), "{refused}");
    }

    #[test]
    fn a_resumed_run_keeps_its_shards_where_they_suffice() {
        let shards = |shards, ranks| session_shards(&config(16, shards, 0), ranks).unwrap();
        assert_eq!(shards(8, 2).batch.shards, 8);
        assert_eq!(shards(0, 1).batch.shards, 0);
        assert_eq!(shards(2, 4).batch.shards, 4);
        assert_eq!(shards(0, 2).batch.shards, 2);
    }
}
