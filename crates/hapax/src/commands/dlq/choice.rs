//! Which letters a command is about: those of the configuration's own workflows and sinks, unless `--all` says more.
//!
//! Reads: the books of every database that the configuration names. Writes: nothing. Invariant: without `--all` nothing
//! is found that another configuration owns.

use std::collections::BTreeSet;

use hapax_engine::books::{Books as _, LetterGroup};
use hapax_engine::letters::{LetterChoice, LetterStore as _, StoredLetter};

use super::pace::PAGE;
use crate::assemble::{AnyBooks, Part, Place, Purpose, parts};
use crate::cli::DlqChoice;
use crate::config::Config;
use crate::exit::{Failure, USAGE};

/// What `--cause` names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CauseWanted {
    /// Every cause with this code.
    Code(String),
    /// The cause that `list` shows under this number: that of its oldest letter.
    Number(i64),
    /// Causes that begin with this text.
    Text(String),
}

impl CauseWanted {
    pub(super) fn parse(text: &str) -> Self {
        let upper = text.to_ascii_uppercase();
        let is_code = upper.strip_prefix("HX").is_some_and(|n| n.len() == 4 && n.bytes().all(|b| b.is_ascii_digit()));
        match text.parse() {
            Ok(number) => Self::Number(number),
            Err(_) if is_code => Self::Code(upper),
            Err(_) => Self::Text(text.to_owned()),
        }
    }

    /// Whether a group of letters is meant.
    pub(super) fn fits(&self, group: &LetterGroup) -> bool {
        match self {
            Self::Code(code) => group.code == *code,
            Self::Number(number) => group.first_id == *number,
            Self::Text(text) => group.fingerprint.starts_with(text),
        }
    }
}

/// Whose letters: a workflow and one of its sinks.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Owner {
    pub(super) workflow: String,
    pub(super) sink: String,
}

/// Letters of one owner and one cause.
pub(super) struct FoundCause {
    /// Which of the opened books has them.
    pub(super) at: usize,
    /// None if no delivery of this name has progress any more.
    pub(super) owner: Option<Owner>,
    pub(super) group: LetterGroup,
}

impl FoundCause {
    /// Whether they are letters of this part's workflow and sink.
    pub(super) fn is_of(&self, part: &Part<'_>) -> bool {
        self.owner.as_ref().is_some_and(|owner| owner.workflow == part.workflow.id && owner.sink == part.sink.name)
    }
}

/// All that was chosen, and the books that hold it.
pub(super) struct FoundLetters {
    pub(super) books: Vec<(Place, AnyBooks)>,
    pub(super) causes: Vec<FoundCause>,
    /// Letters in the same databases that belong to nobody in the configuration; counted where nothing narrows the choice.
    pub(super) of_others: u64,
}

/// What the databases are asked for; the cause is compared here.
fn asked(choice: &DlqChoice, owner: Option<&Owner>) -> LetterChoice {
    LetterChoice {
        workflow: owner.map(|owner| owner.workflow.clone()).or_else(|| choice.workflow.clone()),
        sink: owner.map(|owner| owner.sink.clone()).or_else(|| choice.sink.clone()),
        ids: choice.ids.clone(),
        ..LetterChoice::default()
    }
}

/// Opens every database that may hold letters, each once, and finds what is chosen.
pub(super) async fn find(choice: &DlqChoice, config: &Config, purpose: Purpose) -> Result<FoundLetters, Failure> {
    let mut found = FoundLetters { books: Vec::new(), causes: Vec::new(), of_others: 0 };
    for place in Place::of_all(config) {
        let Some(mut books) = AnyBooks::open(&place, purpose).await? else { continue };
        let at = found.books.len();
        let ours = owners_at(&place, config);
        let mut owners = ours.clone();
        if choice.all {
            let stored = books.deliveries().await?.into_iter();
            owners.extend(stored.map(|stored| Owner { workflow: stored.id.workflow, sink: stored.id.sink }));
        }
        let is = |wanted: &Option<String>, found: &str| wanted.as_ref().is_none_or(|wanted| wanted == found);
        owners.retain(|owner| is(&choice.workflow, &owner.workflow) && is(&choice.sink, &owner.sink));
        let first = found.causes.len();
        for owner in owners {
            let groups = books.causes(&asked(choice, Some(&owner)), 0).await?;
            found.causes.extend(groups.into_iter().map(|group| FoundCause { at, owner: Some(owner.clone()), group }));
        }
        let narrowed = choice.workflow.is_some() || choice.sink.is_some() || !choice.ids.is_empty();
        if choice.all || !narrowed {
            let everything = books.causes(&asked(choice, None), 0).await?;
            let rest = remainder(everything, &found.causes[first..]);
            if choice.all {
                found.causes.extend(rest.into_iter().map(|group| FoundCause { at, owner: None, group }));
            } else {
                found.of_others += rest.iter().map(|group| group.count).sum::<u64>();
            }
        }
        found.books.push((place, books));
    }
    narrow_to_cause(choice, &mut found)?;
    Ok(found)
}

/// The configuration's own workflows and sinks whose letters are at `place`.
fn owners_at(place: &Place, config: &Config) -> BTreeSet<Owner> {
    parts(config)
        .filter(|part| Place::of_part(part, config).as_ref() == Some(place))
        .map(|part| Owner { workflow: part.workflow.id.clone(), sink: part.sink.name.clone() })
        .collect()
}

/// What is in `everything` beyond what its owners have.
fn remainder(everything: Vec<LetterGroup>, owned: &[FoundCause]) -> Vec<LetterGroup> {
    let left = |mut group: LetterGroup| {
        let same = owned.iter().filter(|found| same_cause(&found.group, &group));
        let known: u64 = same.map(|found| found.group.count).sum();
        group.count = group.count.saturating_sub(known);
        (group.count > 0).then_some(group)
    };
    everything.into_iter().filter_map(left).collect()
}

fn narrow_to_cause(choice: &DlqChoice, found: &mut FoundLetters) -> Result<(), Failure> {
    let Some(wanted) = choice.cause.as_deref().map(CauseWanted::parse) else { return Ok(()) };
    found.causes.retain(|cause| wanted.fits(&cause.group));
    let places: BTreeSet<usize> = found.causes.iter().map(|cause| cause.at).collect();
    match wanted {
        CauseWanted::Number(number) if places.len() > 1 => {
            let names: Vec<String> = places.iter().map(|at| found.books[*at].0.to_string()).collect();
            let message = format!(
                "{} have a cause {number} each: name the --workflow or the --sink that is meant",
                names.join(" and ")
            );
            Err(Failure::new("HX5001", message).with_exit(USAGE))
        }
        CauseWanted::Number(_) | CauseWanted::Code(_) | CauseWanted::Text(_) => Ok(()),
    }
}

/// The letters of one found cause, page by page.
pub(super) struct Pages<'a> {
    cause: &'a FoundCause,
    choice: LetterChoice,
    after: i64,
}

impl<'a> Pages<'a> {
    pub(super) fn of(cause: &'a FoundCause, choice: &DlqChoice) -> Self {
        let asked = asked(choice, cause.owner.as_ref());
        let choice = LetterChoice { cause: Some(cause.group.fingerprint.clone()), ..asked };
        Self { cause, choice, after: 0 }
    }

    /// The next letters; none at the end.
    pub(super) async fn next(&mut self, books: &mut AnyBooks) -> Result<Option<Vec<StoredLetter>>, Failure> {
        let mut page = books.list(&self.choice, self.after, PAGE).await?;
        let Some(last) = page.last() else { return Ok(None) };
        self.after = last.id;
        page.retain(|letter| is_of(letter, &self.cause.group));
        Ok(Some(page))
    }
}

/// Whether two groups of letters share their cause.
pub(super) fn same_cause(a: &LetterGroup, b: &LetterGroup) -> bool {
    (&a.fingerprint, &a.code, &a.stage) == (&b.fingerprint, &b.code, &b.stage)
}

/// Whether a letter died of this cause: the databases compare the beginning of its text only.
pub(super) fn is_of(letter: &StoredLetter, group: &LetterGroup) -> bool {
    letter.fingerprint == group.fingerprint && letter.code == group.code && letter.stage == group.stage
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a code, a number and a text are told apart. Method: one of each, and texts that only look like a code.
    #[test]
    fn a_cause_is_named_by_code_number_or_text() {
        assert_eq!(CauseWanted::parse("HX2020"), CauseWanted::Code("HX2020".into()));
        assert_eq!(CauseWanted::parse("hx2020"), CauseWanted::Code("HX2020".into()));
        assert_eq!(CauseWanted::parse("17"), CauseWanted::Number(17));
        for text in ["HX20", "HX20201", "HXabcd", "column \"a\"", ""] {
            assert_eq!(CauseWanted::parse(text), CauseWanted::Text(text.into()));
        }
    }
}
