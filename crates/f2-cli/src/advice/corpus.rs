//! Advice on errors of a corpus.

use f2_corpus::Error;

use crate::failure::{CHECK_NAME, Failure, Kind, advice_on_writing};

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let error = match error {
            Error::Lock(error) => return error.into(),
            error => error,
        };
        let kind = match &error {
            Error::Fractions { .. }
            | Error::VocabularyTooSmall { .. }
            | Error::Exists { .. }
            | Error::Foreign { .. }
            | Error::NotACorpus { .. }
            | Error::NotAPart { .. }
            | Error::NothingToLearn { .. }
            | Error::ReadOnce { .. }
            | Error::BadSeparator { .. }
            | Error::OtherJob { .. } => Kind::Usage,
            Error::Write(_) | Error::DocumentTooLong { .. } => Kind::Device,
            Error::Interrupted => Kind::Interrupted,
            _ => Kind::Data,
        };
        Self::new(kind, &error).advise_if(advice(&error))
    }
}

fn advice(error: &Error) -> Option<&'static str> {
    Some(match error {
        Error::Write(error) => advice_on_writing(error),
        Error::DocumentTooLong { .. } => {
            "cut the text into smaller documents with `--documents`, or, if it is meant to be one \
             and fits into memory several times over, raise the limit with `--max-document`"
        }
        Error::InputChanged { .. } => {
            "prepare again once nothing writes to it; if in parts, with a new folder of parts"
        }
        Error::Compressed { .. } => "fetch or pack the file again; nothing was written",
        Error::InvalidUtf8 { .. } => {
            "convert the file to UTF-8, or replace what is broken with `--lossy`"
        }
        Error::JsonLine { .. } => "correct the line, or name another field with `--field`",
        Error::PairLine { .. } => {
            "correct the line or take it out; `--source-field` and `--target-field` name other fields"
        }
        Error::PairsOfParquet { .. } => "write its pairs as JSON Lines first",
        Error::NoSeparator { .. } => {
            "name a special token that it has, such as `--separator '<|endoftext|>'`, or learn a \
             tokenizer from the pairs: leave `--tokenizer` out"
        }
        Error::BadSeparator { .. } => {
            "for example `--separator '<|separator|>'`, which is the default"
        }
        Error::TooFewPairs { .. } => {
            "give more pairs, other shares with `--split`, or each split its own file with `--train`, \
             `--valid` and `--test`"
        }
        Error::Parquet { .. } => "name a text column with `--field`",
        Error::NothingToRead { .. } => "name the files themselves to read them as plain text",
        Error::Empty { .. } => "give text that is not blank",
        Error::EmptySplit { .. } => {
            "cut it into more documents with `--documents`: `lines`, `chapters`, or a number of \
             lines each; or give each split its own text with `--train`, `--valid` and `--test`"
        }
        Error::Fractions { .. } => "for example `--split 0.8,0.1,0.1`",
        Error::VocabularyTooSmall { .. } => "ask for at least `--vocab-size 256`",
        Error::Tokenizer { .. } => {
            "give a Hugging Face tokenizer.json, or vocab.json and merges.txt"
        }
        Error::NotACorpus { .. } => "choose another folder, or remove this one yourself",
        Error::Foreign { .. } => "move it elsewhere, or choose another folder",
        Error::Exists { .. } => "choose another folder, or replace it with `--force`",
        Error::ReadOnce { .. } => "write it to a file first",
        Error::NameNotUtf8 { .. } => "rename the file, or prepare the text in one go",
        Error::NotAPart { .. } => "move it elsewhere, or choose another folder for the parts",
        Error::NoParts { .. } => {
            "make them first: `f2 prepare INPUT --part 1/N --out PARTS`, and so on"
        }
        Error::MissingParts { .. } => {
            "run `f2 prepare` with `--part` for each of them, with the options of the others; \
             if one is still at work, wait for it"
        }
        Error::OtherJob { .. } => {
            "give every part the same text and options; to begin again, remove the folder of parts \
             or choose another one"
        }
        Error::BadPart { .. } => "remove the folder that this file lies in and run its step again",
        Error::TextChanged { .. } => {
            "restore the text, or remove the folder of parts and begin again; relative paths are \
             resolved in the folder where the parts were started"
        }
        Error::NothingToLearn { .. } => "`f2 prepare --merge PARTS --out CORPUS` comes next",
        Error::Corrupt { .. } => "make the corpus again with `f2 prepare`",
        Error::Read(error) if error.path.ends_with(f2_corpus::names::MANIFEST) => {
            "name a corpus folder that `f2 prepare` wrote"
        }
        Error::Read(_) => CHECK_NAME,
        Error::Interrupted => "nothing was written; the same command starts again",
        _ => return None,
    })
}
