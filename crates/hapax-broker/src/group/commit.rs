//! Offsets: one writer, so that what was allowed first is written first, and a later commit is never undone by an earlier.

use std::collections::BTreeMap;
use std::sync::Arc;

use kafka_protocol::error::ResponseError;
use tokio::sync::{mpsc, oneshot};

use super::expire::{self, Trim};
use super::term::Term;
use super::{Coordinator, now};
use crate::rules::group::{Identity, Timer};
use crate::store::{CommittedOffset, Store};

/// Requests written together, at most.
const TOGETHER: usize = 1024;

/// When groups are written one by one because together they could not: so many failures, and the rest is not tried.
const TRIES: usize = 2;

/// What the writer of offsets does.
pub(super) enum Job {
    /// Writes offsets.
    Commit(Commit),
    /// Looks which offsets of a group have expired, and removes them: between two commits, never beside one.
    Trim(Trim),
}

/// Offsets that a group may commit.
pub(super) struct Commit {
    group: String,
    offsets: Vec<CommittedOffset>,
    done: oneshot::Sender<Result<(), ResponseError>>,
}

/// Who commits.
#[derive(Debug, Clone)]
pub struct Committer {
    /// The member; empty for those who only keep offsets here.
    pub identity: Identity,
    /// The generation it believes in; -1: none.
    pub generation: i32,
    /// What an unknown group is called: the newer word, or the one that older clients know.
    pub unknown_group: ResponseError,
}

impl<S: Store> Coordinator<S> {
    /// Commits offsets, all or none. They carry the time of the commit.
    pub async fn commit(
        &self,
        group: &str,
        committer: &Committer,
        offsets: Vec<CommittedOffset>,
    ) -> Result<(), ResponseError> {
        let term = self.term()?;
        // The place in the queue first: between the check and the queue nothing may come in between.
        let place = term.jobs.reserve().await.map_err(|_| ResponseError::NotCoordinator)?;
        let (done, answer) = oneshot::channel();
        let job = Job::Commit(Commit { group: group.to_owned(), offsets, done });
        match term.held(group).await {
            Some(mut held) => {
                let session = held.group.check_commit(&committer.identity, committer.generation)?;
                if let Some(session) = session {
                    term.set_timer(&mut held, Timer::Session(Arc::clone(&committer.identity.member)), session);
                }
                place.send(job);
            }
            None if committer.generation < 0 => place.send(job),
            None => return Err(self.unknown(group, committer).await),
        }
        answer.await.unwrap_or(Err(ResponseError::NotCoordinator))
    }

    /// A group that has offsets but no members exists; it only does not know this one.
    async fn unknown(&self, group: &str, committer: &Committer) -> ResponseError {
        match self.store.offsets(group).await {
            Ok(offsets) if !offsets.is_empty() => ResponseError::UnknownMemberId,
            Ok(_) | Err(_) => committer.unknown_group,
        }
    }

    /// The offsets of a group as the store has them, whoever wrote them.
    pub async fn offsets(&self, group: &str) -> Result<Vec<CommittedOffset>, ResponseError> {
        let term = self.term()?;
        self.store.offsets(group).await.map_err(|error| term.failed(&error, ResponseError::CoordinatorLoadInProgress))
    }
}

/// Writes until the term is over.
pub(super) async fn run<S: Store>(term: Arc<Term<S>>, mut queue: mpsc::Receiver<Job>) {
    let mut jobs = Vec::new();
    loop {
        // Both branches may be dropped: `recv_many` takes nothing unless it returns.
        let taken = tokio::select! {
            taken = queue.recv_many(&mut jobs, TOGETHER) => taken,
            () = term.over() => break,
        };
        if taken == 0 {
            break;
        }
        let mut together = Vec::new();
        for job in jobs.drain(..) {
            match job {
                Job::Commit(commit) => together.push(commit),
                Job::Trim(trim) => {
                    write(&term, std::mem::take(&mut together)).await;
                    expire::trim(&term, trim).await;
                }
            }
        }
        write(&term, together).await;
    }
    // Whoever still waits learns from the closed channel that the term is over.
}

async fn write<S: Store>(term: &Term<S>, commits: Vec<Commit>) {
    if commits.is_empty() {
        return;
    }
    let written = write_once(term, commits.iter()).await;
    let mut by_group: BTreeMap<&str, Vec<&Commit>> = BTreeMap::new();
    for commit in &commits {
        by_group.entry(&commit.group).or_default().push(commit);
    }
    let mut answers: BTreeMap<String, Result<(), ResponseError>> = BTreeMap::new();
    let apart = written == Err(ResponseError::CoordinatorLoadInProgress) && by_group.len() > 1;
    let mut failures = 0;
    for (group, commits) in by_group {
        // One row that somebody else holds must not keep all others from being written.
        let answer = if apart && failures < TRIES { write_once(term, commits.into_iter()).await } else { written };
        failures += usize::from(answer.is_err());
        answers.insert(group.to_owned(), answer);
    }
    for commit in commits {
        let answer = answers.get(&commit.group).copied().unwrap_or(written);
        // Nobody listens any more when the connection is gone.
        commit.done.send(answer).ok();
    }
}

async fn write_once<'a, S, I>(term: &Term<S>, commits: I) -> Result<(), ResponseError>
where
    S: Store,
    I: Iterator<Item = &'a Commit> + Send,
{
    let committed = now();
    let mut offsets = Vec::new();
    for commit in commits {
        let of_group = commit.offsets.iter().cloned();
        offsets.extend(of_group.map(|offset| (commit.group.clone(), CommittedOffset { committed, ..offset })));
    }
    if offsets.is_empty() {
        return Ok(());
    }
    crate::fault::point("offsets.before_commit");
    let written = term.store.commit_offsets(&term.fence, offsets).await;
    crate::fault::point("offsets.after_commit");
    written.map_err(|error| term.failed(&error, ResponseError::CoordinatorLoadInProgress))
}
