//! What holds for each topic, worked out once per change.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, Weak};

use crate::config::{Compression, TopicSettings};
use crate::log::{Logs, read_lock};
use crate::model::{Topic, TopicId};
use crate::store::Store;

#[derive(Default)]
pub(super) struct KnownSettings {
    known: RwLock<HashMap<TopicId, (Weak<Topic>, TopicSettings)>>,
}

impl<S: Store> Logs<S> {
    /// What holds for a topic, the store's own default for `compression.type` included.
    pub fn settings(&self, topic: &Arc<Topic>) -> TopicSettings {
        let known = &self.shared.settings.known;
        if let Some((seen, settings)) = read_lock(known).get(&topic.id)
            && std::ptr::eq(seen.as_ptr(), Arc::as_ptr(topic))
        {
            return *settings;
        }
        let defaults = &self.shared.config.topic_defaults;
        let mut settings = topic.config.settings(defaults);
        let said = |config: &crate::config::TopicConfig| config.0.contains_key("compression.type");
        if !said(&topic.config) && !said(defaults) && !self.shared.store.keeps_compression() {
            settings.compression = Compression::Uncompressed;
        }
        let mut known = known.write().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, (topic, _)| topic.strong_count() > 0);
        known.insert(topic.id, (Arc::downgrade(topic), settings));
        settings
    }
}
