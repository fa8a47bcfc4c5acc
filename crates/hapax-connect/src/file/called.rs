//! What files are called in messages: as a person would look for them now.
//!
//! Reads: the folder of the lane, and the beginning of files. Writes: nothing. Invariant: a name is said only of a file that lies
//! there under it; of one that is gone that is said.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use hapax_engine::source::SourceError;
use hapax_model::position::{Bookmark, Incarnation};

use super::chain::{Member, Stem};
use super::facts::{Facts, first_in};
use super::feed::{Packing, Unreadable};
use super::incarnation::Opened;
use super::source::FileSource;

/// What the file is called in which a position lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CalledFile {
    /// It lies there under this name.
    Now(String),
    /// It does not lie in its chain any more; what it was called last, if that is known.
    Gone(Option<String>),
}

impl fmt::Display for CalledFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Now(name) => f.write_str(name),
            Self::Gone(Some(name)) => write!(f, "a file that is gone (last seen as {name})"),
            Self::Gone(None) => f.write_str("a file that is gone"),
        }
    }
}

impl FileSource {
    /// What the file of an incarnation is called now, also where it was compressed since; `progress` tells what is known of the
    /// files of the chain.
    #[must_use]
    pub fn called_file(&self, of: &Incarnation, progress: Option<&Bookmark>) -> CalledFile {
        let facts = progress.and_then(|at| self.facts_of(at).ok()).unwrap_or_default();
        let is_current = progress.is_some_and(|at| at.incarnation.number == of.number);
        let copy = facts.copy.as_deref().filter(|_| is_current);
        let is_it = |identity: &str| of.text.starts_with(&format!("{identity},")) || copy == Some(identity);
        let listing = self.members(&facts).unwrap_or_default();
        if let Some(member) = listing.iter().find(|member| is_it(&member.identity)) {
            return CalledFile::Now(self.for_people(member));
        }
        if let Some(member) = self.holds_its_beginning(&listing, &of.text, &facts) {
            return CalledFile::Now(self.for_people(&member));
        }
        let read = facts.read.iter().find(|entry| is_it(&entry.identity)).map(|entry| entry.name.clone());
        CalledFile::Gone(read.or_else(|| facts.name.filter(|_| is_current)))
    }

    /// The one file of the chain that begins as `text` says under another inode: compressed, or moved here.
    fn holds_its_beginning(&self, listing: &[Member], text: &str, facts: &Facts) -> Option<Member> {
        if first_in(text).is_empty() {
            return None;
        }
        let archives = Stem::of(&self.config.path, self.config.rotation).and_then(|stem| self.own_archives(&stem));
        let archives = archives.unwrap_or_default();
        let may_be = |member: &&Member| member.packed || facts.entry(member).is_none();
        let begins_so = |member: &&Member| -> bool {
            let Ok(Some(opened)) = self.open_member(member) else { return false };
            match opened.packing() {
                Ok(Packing::None) => opened.begins_as(text).unwrap_or(false),
                Ok(Packing::Gzip | Packing::Zstd) => opened.unpacks_to(text).is_ok_and(|same| same == Some(true)),
                Err(_) => false,
            }
        };
        let mut found = listing.iter().chain(&archives).filter(may_be).filter(begins_so);
        let first = found.next()?;
        found.all(|other| other.identity == first.identity).then(|| first.clone())
    }

    /// The name of a file of the chain, with the folder that a person has written.
    fn for_people(&self, member: &Member) -> String {
        let beside = self.config.path.parent() == member.path.parent();
        match (beside, self.lane.rsplit_once('/')) {
            (true, Some((folder, _))) => format!("{folder}/{}", member.name),
            (true, None) => member.name.clone(),
            (false, _) => member.path.display().to_string(),
        }
    }

    /// Where an open file lies now; the lane's own path if that cannot be told.
    pub(super) fn path_of(&self, opened: &Opened) -> PathBuf {
        let listing = self.members(&self.facts).unwrap_or_default();
        let found = listing.into_iter().find(|member| member.identity == opened.identity());
        found.map_or_else(|| self.config.path.clone(), |member| member.path)
    }

    /// An error at a file that need not have the lane's own name.
    pub(super) fn unavailable_in(&self, opened: &Opened, source: io::Error) -> SourceError {
        unavailable(&self.path_of(opened), source)
    }
}

/// An error at the file of a path.
pub(super) fn unavailable(path: &Path, source: io::Error) -> SourceError {
    unavailable_behind(path, source, None)
}

/// An error as the engine knows it: what cannot be read will not be read by trying again.
#[expect(clippy::wildcard_enum_match_arm, reason = "the system may answer anything; most of it has one cure")]
pub(super) fn unavailable_behind(path: &Path, source: io::Error, delivered: Option<u64>) -> SourceError {
    if let Some(Unreadable { code, what }) = source.get_ref().and_then(|inner| inner.downcast_ref()) {
        let upto =
            delivered.map(|offset| format!("; all records before byte {offset} are delivered")).unwrap_or_default();
        return SourceError::Unreadable { code, what: format!("{}: {what}{upto}", path.display()) };
    }
    let cure = match source.kind() {
        io::ErrorKind::NotFound => "create it or correct `path`",
        io::ErrorKind::PermissionDenied => {
            "give the user that runs hapax the right to read it and to enter its directory"
        }
        io::ErrorKind::InvalidInput | io::ErrorKind::IsADirectory => "name a file in `path`",
        _ => "check the disk or mount that it is on",
    };
    SourceError::Unavailable { what: format!("{} cannot be read ({cure})", path.display()), source }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use hapax_engine::source::{Source as _, StartAt};

    use super::super::config::FileSourceConfig;
    use super::*;

    /// Goal: a file is called by the name that it has now, and none is said of one that is gone or that cannot be told from another. Method:
    /// one file, renamed, copied under another inode, copied twice, and removed.
    #[tokio::test]
    async fn a_file_is_called_by_the_name_that_it_has_now() {
        let folder = tempfile::tempdir().expect("a folder");
        let at = |name: &str| folder.path().join(name);
        let now = |name: &str| CalledFile::Now(at(name).display().to_string());
        fs::write(at("app.log"), "{\"n\":1}\n").expect("written");
        let mut source = FileSource::new(FileSourceConfig::new(at("app.log")));
        let start = source.start(StartAt::Earliest).await.expect("there");
        let called = || source.called_file(&start.incarnation, Some(&start));
        assert_eq!(called(), now("app.log"));
        fs::rename(at("app.log"), at("app.log.1")).expect("rotated");
        assert_eq!(called(), now("app.log.1"));
        fs::copy(at("app.log.1"), at("app.log.2")).expect("copied");
        assert_eq!(called(), now("app.log.1"), "the same inode comes first");
        fs::remove_file(at("app.log.1")).expect("removed");
        assert_eq!(called(), now("app.log.2"));
        fs::copy(at("app.log.2"), at("app.log.3")).expect("copied");
        assert_eq!(called(), CalledFile::Gone(Some("app.log".into())), "two hold the same");
        fs::remove_file(at("app.log.2")).and(fs::remove_file(at("app.log.3"))).expect("removed");
        assert_eq!(called().to_string(), "a file that is gone (last seen as app.log)");
    }
}
