//! The appender: one task, one commit under way. What arrives meanwhile is the next commit.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::mpsc;

use crate::fault::{self, Bug, planted};
use crate::log::append::Work;
use crate::log::commit::Commit;
use crate::log::{AppendError, Shared, now};
use crate::store::{Appended, Store, StoreError};

/// Appends until nobody can put anything in any more.
pub(super) async fn run<S: Store>(shared: Arc<Shared<S>>, mut queue: mpsc::UnboundedReceiver<Work>) {
    while let Some(first) = queue.recv().await {
        let works = gather(first, &mut queue, shared.config.append_group);
        let committing = shared.committing.lock().await;
        let commit = Commit::build(works, now());
        settle(&shared, commit).await;
        drop(committing);
    }
}

/// All that waits, up to `max` bytes and one batch more.
fn gather(first: Work, queue: &mut mpsc::UnboundedReceiver<Work>, max: usize) -> Vec<Work> {
    let mut bytes = first.batch.bytes.len();
    let mut works = vec![first];
    while bytes < max
        && let Ok(work) = queue.try_recv()
    {
        bytes += work.batch.bytes.len();
        works.push(work);
    }
    works
}

/// Writes a commit, without what the store refuses, and tells everybody.
async fn settle<S: Store>(shared: &Shared<S>, mut commit: Commit) {
    if planted(Bug::BrokerAnswerBeforeCommit) {
        return answer_first(shared, commit).await;
    }
    let metrics = &shared.config.metrics;
    while let Some(request) = commit.request() {
        if planted(Bug::BrokerUndurableSnapshot) {
            snapshot_first(shared, &commit).await;
        }
        let began = Instant::now();
        fault::point("append.before_commit");
        let refused = match shared.store.append(request).await {
            Ok(Appended::Done) => {
                metrics.commits.add(began.elapsed());
                fault::point("append.after_commit");
                break;
            }
            Ok(Appended::Refused(refused)) => refused,
            Err(error) => return fail(shared, commit, &error),
        };
        let gone = commit.refuse(&refused);
        if gone.is_empty() {
            let error = StoreError::InDoubt("the store refused what it was not asked".to_owned());
            return fail(shared, commit, &error);
        }
        tracing::info!(partitions = gone.len(), "another broker leads partitions that this one wrote to");
        gone.into_iter().for_each(|(id, epoch)| shared.drop_one(id, Some(epoch)));
        shared.trouble.send_modify(|trouble| trouble.lost += 1);
    }
    commit.publish(&shared.cache, metrics);
}

/// A planted bug: everybody is told before anything is durable.
async fn answer_first<S: Store>(shared: &Shared<S>, commit: Commit) {
    let request = commit.request();
    commit.publish(&shared.cache, &shared.config.metrics);
    fault::point("append.before_commit");
    if let Some(request) = request
        && shared.store.append(request).await != Ok(Appended::Done)
    {
        shared.drop_all();
        shared.trouble.send_modify(|trouble| trouble.lost += 1);
    }
}

/// A planted bug: the snapshot holds what is about to be written.
async fn snapshot_first<S: Store>(shared: &Shared<S>, commit: &Commit) {
    for (partition, snapshot) in commit.undurable_snapshots() {
        if let Err(error) = shared.store.save_snapshot(partition.id, partition.epoch(), snapshot).await {
            tracing::warn!(%error, "no snapshot");
        }
    }
}

/// The only place that decides what a failed commit means.
fn fail<S: Store>(shared: &Shared<S>, commit: Commit, error: &StoreError) {
    shared.config.metrics.commits_failed.add(1);
    let answer = match error {
        // Whether it was written is unknown, or what we remember is not what is stored: be a stranger, lead again, load
        // again. A retry then finds its batch, or does not.
        StoreError::InDoubt(_) | StoreError::Fenced | StoreError::Conflict => {
            tracing::warn!(%error, "a commit's outcome is unknown: leading anew");
            drop(shared.drop_all());
            shared.trouble.send_modify(|trouble| trouble.lost += 1);
            AppendError::NotLeader
        }
        StoreError::Away(_) => {
            tracing::warn!(%error, "a commit was not written");
            AppendError::NotLeader
        }
        StoreError::Full(_) => {
            tracing::error!(%error, "a commit was not written");
            AppendError::Storage(error.to_string())
        }
        StoreError::Broken(_) | StoreError::Damaged(_) => {
            tracing::error!(%error, "the store takes nothing more");
            shared.trouble.send_modify(|trouble| trouble.stop = Some(error.to_string()));
            AppendError::Storage(error.to_string())
        }
    };
    commit.fail(&answer);
}
