//! One broker: what all requests share, how it starts and how it ends.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::task::JoinHandle;

use crate::answers::Answers;
use crate::catalog::Catalog;
use crate::config::BrokerConfig;
use crate::group::Coordinator;
use crate::lead::{Duties, LeadError, Leadership};
use crate::log::Logs;
use crate::model::{Offset, PartitionId};
use crate::store::{Address, GroupsLed, LedPartition, Store, StoreError};
use crate::upkeep;

/// How long a stop waits for a look at the store that is under way.
const STOP_WAIT: Duration = Duration::from_secs(5);

/// One broker: its store, what it leads, the groups it coordinates.
pub struct Broker<S> {
    /// What is durable.
    pub store: Arc<S>,
    /// What it was told.
    pub config: BrokerConfig,
    /// Topics.
    pub catalog: Catalog<S>,
    /// Who leads.
    pub lead: Leadership<S>,
    /// The partitions it leads.
    pub logs: Logs<S>,
    /// Groups.
    pub groups: Coordinator<S>,
    /// Memory for answers.
    pub(crate) answers: Answers,
    tasks: Mutex<Vec<JoinHandle<()>>>,
}

impl<S: Store> Broker<S> {
    /// Puts a broker together. It serves nothing before it leads.
    pub fn new(store: Arc<S>, mut config: BrokerConfig) -> Arc<Self> {
        if !store.keeps_compression() {
            // Said here, so that clients are also told it.
            let said = config.topic_defaults.0.entry("compression.type".to_owned());
            said.or_insert_with(|| "uncompressed".to_owned());
        }
        let catalog = Catalog::new(Arc::clone(&store));
        let lead = Leadership::new(Arc::clone(&store), Arc::clone(&config.metrics));
        let logs = Logs::new(Arc::clone(&store), config.clone());
        let groups = Coordinator::new(Arc::clone(&store), config.clone());
        let answers = Answers::new(config.answer_memory);
        Arc::new(Self { store, config, catalog, lead, logs, groups, answers, tasks: Mutex::default() })
    }

    /// Joins under `address`, where clients reach us; leads what it should, or stands by; and keeps doing so.
    ///
    /// # Errors
    /// If another process has our number, or the store does not work.
    pub async fn start(self: &Arc<Self>, address: Address) -> Result<(), LeadError> {
        self.lead.join(address).await?;
        self.catalog.refresh().await.map_err(LeadError::Store)?;
        self.lead.look(self.as_ref()).await.map_err(LeadError::Store)?;
        let (keeper, watcher, listener) = (Arc::clone(self), Arc::clone(self), Arc::clone(self));
        let tasks = [
            tokio::spawn(async move { keeper.lead.keep().await }),
            tokio::spawn(async move { watcher.lead.watch(watcher.as_ref()).await }),
            tokio::spawn(async move { listener.heed_trouble().await }),
        ];
        let mut running = self.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        running.extend(tasks);
        running.extend(upkeep::start(self));
        Ok(())
    }

    /// Ends gracefully: saves who wrote last, finishes the commit that runs, and gives everything back, so that another
    /// broker need not wait.
    pub async fn stop(&self) {
        let turn = tokio::time::timeout(STOP_WAIT, self.lead.turn()).await;
        self.end_tasks();
        drop(turn);
        upkeep::save_all(&self.logs, &*self.store).await;
        self.give_up().await;
        if let Err(error) = self.lead.leave().await {
            tracing::warn!(%error, "could not leave; others take over when the lease ends");
        }
    }

    /// Hears what the appender met: what it lost is led anew at once, a store that takes nothing more ends the broker.
    async fn heed_trouble(&self) {
        let mut trouble = self.logs.trouble();
        while trouble.changed().await.is_ok() {
            if let Some(message) = trouble.borrow_and_update().stop.clone() {
                self.lead.fail(LeadError::Store(StoreError::Broken(message)));
            }
            self.lead.nudge();
        }
    }

    /// Ends what runs in the background, and nothing else: as if the process stood still.
    pub(crate) fn end_tasks(&self) {
        for task in self.tasks.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
            task.abort();
        }
    }
}

impl<S: Store> Duties for Broker<S> {
    fn served(&self) -> HashMap<PartitionId, i32> {
        self.logs.served()
    }

    fn acknowledged(&self, partition: PartitionId) -> Option<Offset> {
        self.logs.acknowledged(partition)
    }

    async fn take_over(&self, led: Vec<LedPartition>) -> Result<(), StoreError> {
        self.logs.take_over(led).await
    }

    fn coordinates(&self) -> bool {
        self.groups.is_led()
    }

    async fn take_over_groups(&self, led: GroupsLed) -> Result<(), StoreError> {
        self.groups.take_over(led);
        self.config.metrics.takeovers.add(1);
        Ok(())
    }

    async fn give_up(&self) {
        self.groups.give_up();
        self.logs.give_up().await;
    }

    async fn forget(&self, partitions: &[PartitionId]) {
        self.logs.forget(partitions).await;
    }

    async fn refresh(&self) -> Result<(), StoreError> {
        // Alone on its store, nobody else changes topics.
        if self.store.lease().is_some() { self.catalog.refresh().await } else { Ok(()) }
    }
}
