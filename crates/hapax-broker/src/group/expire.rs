//! Offsets that nobody has use for any more, and groups without members or offsets.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use kafka_protocol::error::ResponseError;
use tokio::sync::oneshot;
use tracing::info;

use super::commit::Job;
use super::term::Term;
use super::{Coordinator, now};
use crate::model::{Timestamp, TopicId};
use crate::rules::group::Expiry;
use crate::store::{Store, StoreError};

/// How often it is looked.
const INTERVAL: Duration = Duration::from_secs(600);

/// Topic names by number.
type Names = Arc<HashMap<TopicId, Arc<str>>>;

/// A group whose offsets are to be looked through.
pub(super) struct Trim {
    group: String,
    expiry: Expiry,
    names: Names,
    now: Timestamp,
    /// Told whether the group has no offsets left.
    done: oneshot::Sender<Result<bool, ResponseError>>,
}

impl<S: Store> Coordinator<S> {
    /// Removes what has expired by `now`: offsets, and groups that have neither members nor offsets.
    pub async fn expire(&self, now: Timestamp) -> Result<(), ResponseError> {
        let term = self.term()?;
        expire(&term, now).await
    }
}

/// Looks now and then until the term is over.
pub(super) async fn run<S: Store>(term: Arc<Term<S>>) {
    loop {
        // Both branches may be dropped: nothing is taken by waiting.
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            () = term.over() => return,
        }
        if let Err(error) = expire(&term, now()).await {
            info!(error = %error, "offsets could not be looked through, later again");
        }
    }
}

async fn expire<S: Store>(term: &Term<S>, now: Timestamp) -> Result<(), ResponseError> {
    let failed = |error: StoreError| term.failed(&error, ResponseError::CoordinatorLoadInProgress);
    let topics = term.store.topics().await.map_err(failed)?;
    let names: Names = Arc::new(topics.into_iter().map(|topic| (topic.id, topic.name)).collect());
    let with_offsets = term.store.groups_with_offsets().await.map_err(failed)?;
    let mut groups: BTreeSet<String> = with_offsets.into_iter().map(|(group, _)| group).collect();
    groups.extend(term.names().iter().map(ToString::to_string));
    for group in groups {
        expire_group(term, group, &names, now).await?;
    }
    Ok(())
}

async fn expire_group<S: Store>(
    term: &Term<S>,
    group: String,
    names: &Names,
    now: Timestamp,
) -> Result<(), ResponseError> {
    // The place in the queue first, as all who commit do: else they and we could wait for each other.
    let place = term.jobs.reserve().await.map_err(|_| ResponseError::NotCoordinator)?;
    // The lock is kept: nobody joins between the look and the removal.
    let held = term.held(&group).await;
    let expiry = held.as_ref().map_or(Expiry::STANDALONE, |held| held.group.expiry());
    if expiry == Expiry::Never {
        return Ok(());
    }
    let (done, answer) = oneshot::channel();
    let trim = Trim { group: group.clone(), expiry, names: Arc::clone(names), now, done };
    place.send(Job::Trim(trim));
    let bare = answer.await.unwrap_or(Err(ResponseError::NotCoordinator))?;
    if let Some(mut held) = held
        && bare
        && held.group.check_delete().is_ok()
    {
        let deleted = term.store.delete_groups(&term.fence, &[group]).await;
        deleted.map_err(|error| term.failed(&error, ResponseError::CoordinatorLoadInProgress))?;
        info!(group = &*held.id, "group without members and offsets removed");
        term.forget(&mut held);
    }
    Ok(())
}

/// In the writer's own time: no commit of ours comes between the look and the removal.
pub(super) async fn trim<S: Store>(term: &Term<S>, trim: Trim) {
    let trimmed = trim_group(term, &trim).await;
    let answer = trimmed.map_err(|error| term.failed(&error, ResponseError::CoordinatorLoadInProgress));
    trim.done.send(answer).ok();
}

async fn trim_group<S: Store>(term: &Term<S>, trim: &Trim) -> Result<bool, StoreError> {
    let offsets = term.store.offsets(&trim.group).await?;
    let expired = offsets.iter().filter(|offset| {
        let topic = trim.names.get(&offset.topic).map(|name| &**name).unwrap_or_default();
        trim.expiry.is_over(topic, offset.committed, term.offsets_retention, trim.now)
    });
    let expired: Vec<(TopicId, i32)> = expired.map(|offset| (offset.topic, offset.index)).collect();
    if !expired.is_empty() {
        term.store.delete_offsets(&term.fence, &trim.group, &expired).await?;
        info!(group = trim.group, offsets = expired.len(), "expired offsets removed");
    }
    Ok(expired.len() == offsets.len())
}
