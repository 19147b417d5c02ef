//! The folder of parts: locks, and the records of finished steps.

use std::path::{Path, PathBuf};

use f2_files::{Lock, ReadError, StagedFolder};

use super::Part;
use super::content::{Content, Kind};
use super::job::Job;
use super::record::{RECORD, Record};
use crate::error::{Error, Result};
use crate::sealed::Sealed as _;

/// The folder of parts.
pub(super) struct PartsFolder {
    path: PathBuf,
}

/// A finished step.
pub(super) struct Done {
    pub(super) path: PathBuf,
    pub(super) record: Record,
}

impl Done {
    /// The error for a step whose folder is invalid.
    pub(super) fn bad(&self, reason: impl Into<String>) -> Error {
        Error::BadPart { path: self.path.join(RECORD), reason: reason.into() }
    }
}

impl PartsFolder {
    /// Opens a folder, which must hold nothing but parts; it need not exist yet.
    pub(super) fn at(path: &Path) -> Result<Self> {
        let folder = Self { path: path.to_path_buf() };
        folder.contents()?;
        Ok(folder)
    }

    /// All entries in order of name, except hidden ones such as leftovers and locks.
    fn contents(&self) -> Result<Vec<Content>> {
        if !self.path.exists() {
            return Ok(Vec::new());
        }
        let mut names = Vec::new();
        for entry in self.path.read_dir().map_err(ReadError::of(&self.path))? {
            let name = entry.map_err(ReadError::of(&self.path))?.file_name();
            names.push(name.to_string_lossy().into_owned());
        }
        names.retain(|name| !name.starts_with('.'));
        names.sort();
        let content = |name: String| {
            let other = || Error::NotAPart { path: self.path.clone(), name: name.clone() };
            Content::named(&name).ok_or_else(other)
        };
        names.into_iter().map(content).collect()
    }

    /// Locks a part: one process at a time works on it.
    pub(super) fn lock(&self, part: Part) -> Result<Lock> {
        let Part { number, of } = part;
        Ok(Lock::beside(&self.path.join(format!("part-{number:05}-of-{of:05}")))?)
    }

    /// Locks the vocabulary: one process at a time learns it.
    pub(super) fn lock_vocabulary(&self) -> Result<Lock> {
        Ok(Lock::beside(&self.path.join(Content::Vocabulary.name()))?)
    }

    /// The job of the existing parts, from the first of them.
    pub(super) fn job(&self) -> Result<Job> {
        let Some(first) = self.contents()?.into_iter().next() else {
            return Err(Error::NoParts { path: self.path.clone() });
        };
        Ok(self.load(first)?.record.job)
    }

    /// Refuses a folder whose first entry belongs to another job.
    pub(super) fn check_first(&self, job: &Job) -> Result<()> {
        let first = self.contents()?.into_iter().next();
        first.map_or(Ok(()), |content| self.load_of(job, content).map(drop))
    }

    /// Refuses a folder with any entry of another job.
    pub(super) fn check_all(&self, job: &Job) -> Result<()> {
        self.contents()?.into_iter().try_for_each(|content| self.load_of(job, content).map(drop))
    }

    /// The result of a part's step, if it exists.
    pub(super) fn done(&self, job: &Job, kind: Kind, part: Part) -> Result<Option<Done>> {
        self.find(job, Content::Part(kind, part))
    }

    /// The learned vocabulary, if it exists.
    pub(super) fn vocabulary(&self, job: &Job) -> Result<Option<Done>> {
        self.find(job, Content::Vocabulary)
    }

    /// The results of a step for all parts; the error names the parts that lack it.
    pub(super) fn all(&self, job: &Job, kind: Kind) -> Result<Vec<Done>> {
        let (mut done, mut missing) = (Vec::new(), Vec::new());
        for part in Part::all(job.parts) {
            match self.done(job, kind, part)? {
                Some(found) => done.push(found),
                None => missing.push(part.number),
            }
        }
        if missing.is_empty() {
            return Ok(done);
        }
        let (path, step) = (self.path.clone(), kind.name());
        Err(Error::MissingParts { path, missing, of: job.parts, step })
    }

    /// Whether any part has finished this step.
    pub(super) fn any(&self, kind: Kind) -> Result<bool> {
        let of_kind = |content| matches!(content, Content::Part(other, _) if other == kind);
        Ok(self.contents()?.into_iter().any(of_kind))
    }

    /// Writes the result of a part's step, and publishes it as a whole.
    pub(super) fn publish(
        &self,
        kind: Kind,
        part: Part,
        write: impl FnOnce(&Path) -> Result<Record>,
    ) -> Result<()> {
        self.publish_as(Content::Part(kind, part), write)
    }

    /// Writes the vocabulary, and publishes it as a whole.
    pub(super) fn publish_vocabulary(
        &self,
        write: impl FnOnce(&Path) -> Result<Record>,
    ) -> Result<()> {
        self.publish_as(Content::Vocabulary, write)
    }

    fn publish_as(
        &self,
        content: Content,
        write: impl FnOnce(&Path) -> Result<Record>,
    ) -> Result<()> {
        let staged = StagedFolder::create(&self.path.join(content.name()))?;
        write(staged.path())?.save(&staged.path().join(RECORD))?;
        Ok(staged.publish()?)
    }

    fn find(&self, job: &Job, content: Content) -> Result<Option<Done>> {
        self.path.join(content.name()).exists().then(|| self.load_of(job, content)).transpose()
    }

    fn load(&self, content: Content) -> Result<Done> {
        let path = self.path.join(content.name());
        let record = Record::load(&path.join(RECORD))?;
        let done = Done { path, record };
        content.check(&done.record).map_err(|reason| done.bad(reason))?;
        Ok(done)
    }

    fn load_of(&self, job: &Job, content: Content) -> Result<Done> {
        let mut done = self.load(content)?;
        if let Some(difference) = job.difference(&done.record.job) {
            return Err(Error::OtherJob { path: done.path, difference });
        }
        // The list equals the job's and has an entry per file: not kept for every part at once.
        done.record.job.files = Vec::new();
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::Step;
    use super::*;
    use crate::{Fractions, Inputs, Options};

    /// Each record lists every file of the text: for all parts at once this may be too much.
    #[test]
    fn the_list_of_files_is_not_kept_for_every_part() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("text.txt");
        std::fs::write(&text, "the cat\n").unwrap();
        let inputs = Inputs::Spread { paths: vec![text], fractions: Fractions::default() };
        let parts = PartsFolder::at(&folder.path().join("parts")).unwrap();
        let (job, _) = Job::new(&Options::new(inputs, &parts.path), 2).unwrap();
        for part in Part::all(2) {
            let step = Step::Counted { documents: 1 };
            let record =
                |staging: &Path| Record::of(staging, [], Some(part), job.clone(), step, Vec::new());
            parts.publish(Kind::Counted, part, record).unwrap();
        }
        assert_eq!(parts.job().unwrap().files, job.files);
        let done = parts.all(&job, Kind::Counted).unwrap();
        assert!(done.iter().all(|done| done.record.job.files.is_empty()));
    }
}
