//! Topics as this broker knows them: by name, by number, by uuid.
//!
//! Reads: the store, when a name is not known here. Invariant: what is known was in the store after the last change that this
//! broker made. Not here: who leads the partitions (`lead`), what is in them (`log`).

mod change;
mod name;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use uuid::Uuid;

use crate::model::{Topic, TopicId};
use crate::store::{Store, StoreError};

pub(crate) use name::{check_name, collision_key};

/// All topics.
pub struct Catalog<S> {
    store: Arc<S>,
    known: RwLock<Known>,
}

#[derive(Default)]
struct Known {
    /// Raised by every change; what was read from the store before a change is not kept after it.
    revision: u64,
    by_name: BTreeMap<Arc<str>, Arc<Topic>>,
    by_uuid: HashMap<Uuid, Arc<Topic>>,
    by_id: HashMap<TopicId, Arc<Topic>>,
}

impl Known {
    fn insert(&mut self, topic: &Arc<Topic>) {
        if let Some(old) = self.by_name.insert(Arc::clone(&topic.name), Arc::clone(topic)) {
            self.by_uuid.remove(&old.uuid);
            self.by_id.remove(&old.id);
        }
        self.by_uuid.insert(topic.uuid, Arc::clone(topic));
        self.by_id.insert(topic.id, Arc::clone(topic));
    }

    fn remove(&mut self, id: TopicId) {
        if let Some(topic) = self.by_id.remove(&id) {
            self.by_uuid.remove(&topic.uuid);
            self.by_name.remove(&topic.name);
        }
    }
}

impl<S: Store> Catalog<S> {
    pub(crate) fn new(store: Arc<S>) -> Self {
        Self { store, known: RwLock::default() }
    }

    /// A topic by its name: from memory, else from the store.
    pub async fn topic(&self, name: &str) -> Result<Option<Arc<Topic>>, StoreError> {
        let revision = match self.read() {
            known if known.by_name.contains_key(name) => return Ok(known.by_name.get(name).cloned()),
            known => known.revision,
        };
        let Some(topic) = self.store.topic(name).await?.map(Arc::new) else { return Ok(None) };
        let mut known = self.write();
        if known.revision == revision {
            known.insert(&topic);
        }
        Ok(Some(topic))
    }

    /// A topic by its name, if it is known here.
    pub fn known(&self, name: &str) -> Option<Arc<Topic>> {
        self.read().by_name.get(name).cloned()
    }

    /// A topic by what newer clients call it by, if it is known here.
    pub fn by_uuid(&self, uuid: Uuid) -> Option<Arc<Topic>> {
        self.read().by_uuid.get(&uuid).cloned()
    }

    /// A topic by the store's number, if it is known here.
    pub fn by_id(&self, id: TopicId) -> Option<Arc<Topic>> {
        self.read().by_id.get(&id).cloned()
    }

    /// Everything that is known here, by name.
    pub fn all(&self) -> Vec<Arc<Topic>> {
        self.read().by_name.values().cloned().collect()
    }

    /// Reads everything anew: other brokers of the same store change topics, too.
    pub async fn refresh(&self) -> Result<(), StoreError> {
        let revision = self.read().revision;
        let topics = self.store.topics().await?;
        let mut known = self.write();
        if known.revision == revision {
            *known = Known { revision, ..Known::default() };
            for topic in topics {
                known.insert(&Arc::new(topic));
            }
        }
        Ok(())
    }

    /// Keeps a topic that was just made or changed.
    fn keep(&self, topic: Topic) -> Arc<Topic> {
        let topic = Arc::new(topic);
        let mut known = self.write();
        known.revision += 1;
        known.insert(&topic);
        topic
    }

    /// Forgets a topic that was just deleted.
    fn forget(&self, id: TopicId) {
        let mut known = self.write();
        known.revision += 1;
        known.remove(id);
    }

    fn read(&self) -> RwLockReadGuard<'_, Known> {
        self.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Known> {
        self.known.write().unwrap_or_else(PoisonError::into_inner)
    }
}
