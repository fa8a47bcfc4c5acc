//! What members ask: join, sync, heartbeat, leave.

use std::sync::Arc;

use kafka_protocol::error::ResponseError;
use tokio::sync::oneshot;

use super::term::{Term, Waiting};
use super::{Coordinator, now};
use crate::rules::group::{Identity, Join, JoinAnswer, JoinRefusal, Leaving, Step, Sync, SyncAnswer, Ticket, Timer};
use crate::store::Store;

impl<S: Store> Coordinator<S> {
    /// Joins; waits until the generation begins. The ticket in `join` is set here.
    pub async fn join(&self, group: &str, join: Join) -> JoinAnswer {
        let member = Arc::clone(&join.identity.member);
        let lost = |error| JoinRefusal::new(error, &member);
        let term = self.term().map_err(lost)?;
        let (sender, answer) = oneshot::channel();
        let ticket = term.enroll(Waiting::Join(sender)).map_err(lost)?;
        let join = Join { ticket, ..join };
        // A task of its own: a connection that breaks must not stop a save half way.
        tokio::spawn(take_join(term, group.to_owned(), join));
        answer.await.unwrap_or_else(|_| Err(lost(ResponseError::NotCoordinator)))
    }

    /// Syncs; waits for the leader. The ticket in `sync` is set here.
    pub async fn sync(&self, group: &str, sync: Sync) -> SyncAnswer {
        let term = self.term()?;
        let (sender, answer) = oneshot::channel();
        let ticket = term.enroll(Waiting::Sync(sender))?;
        let sync = Sync { ticket, ..sync };
        tokio::spawn(take_sync(term, group.to_owned(), sync));
        answer.await.unwrap_or(Err(ResponseError::NotCoordinator))
    }

    /// A heartbeat.
    pub async fn heartbeat(&self, group: &str, identity: &Identity, generation: i32) -> Result<(), ResponseError> {
        let term = self.term()?;
        let mut held = term.held(group).await.ok_or(ResponseError::UnknownMemberId)?;
        let (session, answer) = held.group.heartbeat(identity, generation);
        if let Some(session) = session {
            term.set_timer(&mut held, Timer::Session(Arc::clone(&identity.member)), session);
        }
        answer
    }

    /// Members leave: one answer each, in order.
    pub async fn leave(
        &self,
        group: &str,
        leaving: Vec<Leaving>,
    ) -> Result<Vec<Result<(), ResponseError>>, ResponseError> {
        let term = self.term()?;
        let (sender, answer) = oneshot::channel();
        tokio::spawn(take_leave(term, group.to_owned(), leaving, sender));
        answer.await.unwrap_or(Err(ResponseError::NotCoordinator))
    }
}

async fn take_join<S: Store>(term: Arc<Term<S>>, group: String, join: Join) {
    // Only who has no id yet may found a group.
    let held =
        if join.identity.member.is_empty() { Some(term.held_or_new(&group).await) } else { term.held(&group).await };
    let done = match held {
        Some(mut held) => term.advance(&mut held, |group| group.join(&join, &term.limits, now())).await,
        None => Err(unknown_group(&term, &join)),
    };
    if let Err(error) = done
        && let Some(Waiting::Join(sender)) = term.withdraw(join.ticket)
    {
        sender.send(Err(JoinRefusal::new(error, &join.identity.member))).ok();
    }
}

/// A session that nobody may have is refused before the group is looked for.
fn unknown_group<S: Store>(term: &Term<S>, join: &Join) -> ResponseError {
    let fits = (term.limits.session_min..=term.limits.session_max).contains(&join.session_timeout);
    if fits { ResponseError::UnknownMemberId } else { ResponseError::InvalidSessionTimeout }
}

async fn take_sync<S: Store>(term: Arc<Term<S>>, group: String, sync: Sync) {
    let done = match term.held(&group).await {
        Some(mut held) => term.advance(&mut held, |group| group.sync(&sync, now())).await,
        None => Err(ResponseError::UnknownMemberId),
    };
    if let Err(error) = done
        && let Some(Waiting::Sync(sender)) = term.withdraw(sync.ticket)
    {
        sender.send(Err(error)).ok();
    }
}

type Left = Result<Vec<Result<(), ResponseError>>, ResponseError>;

async fn take_leave<S: Store>(term: Arc<Term<S>>, group: String, leaving: Vec<Leaving>, sender: oneshot::Sender<Left>) {
    let left = match term.held(&group).await {
        None => Ok(vec![Err(ResponseError::UnknownMemberId); leaving.len()]),
        Some(mut held) => {
            let mut answers = Vec::new();
            let event = |group: &mut crate::rules::group::Group| -> Step {
                let (step, left) = group.leave(&leaving, now());
                answers = left;
                step
            };
            let done = term.advance(&mut held, event).await;
            done.map(|()| answers)
        }
    };
    sender.send(left).ok();
}

/// Before the coordinator numbers it.
pub(crate) const UNNUMBERED: Ticket = Ticket(u64::MAX);
