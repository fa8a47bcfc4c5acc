//! Key functions that an embedding program brings along.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::keyer::KeyFacts;
use crate::field::{FieldPath, FieldValue};

type Function = dyn Fn(&KeyFacts<'_>, &[FieldValue<'_>]) -> Result<Vec<u8>, String> + Send + Sync;

/// A function that names an event's entity, and the fields it wants to see.
///
/// It must be deterministic: the same event gives the same bytes in any run and on any machine. That is a condition
/// which the workflow states (`custom-key-deterministic`), because nobody can check it.
#[derive(Clone)]
pub struct CustomKey {
    fields: Arc<[FieldPath]>,
    function: Arc<Function>,
}

impl CustomKey {
    /// The fields whose values the function gets, in this order.
    #[must_use]
    pub fn fields(&self) -> &[FieldPath] {
        &self.fields
    }

    pub(super) fn call(&self, facts: &KeyFacts<'_>, values: &[FieldValue<'_>]) -> Result<Vec<u8>, String> {
        (self.function)(facts, values)
    }
}

impl fmt::Debug for CustomKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CustomKey").field("fields", &self.fields).finish_non_exhaustive()
    }
}

/// The custom key functions of a program, by name.
#[derive(Debug, Clone, Default)]
pub struct CustomKeys(BTreeMap<String, CustomKey>);

impl CustomKeys {
    /// With one more function. It returns the bytes that name the entity, or says why it refuses the event.
    #[must_use]
    pub fn with(
        mut self,
        name: &str,
        fields: Vec<FieldPath>,
        function: impl Fn(&KeyFacts<'_>, &[FieldValue<'_>]) -> Result<Vec<u8>, String> + Send + Sync + 'static,
    ) -> Self {
        self.0.insert(name.to_owned(), CustomKey { fields: fields.into(), function: Arc::new(function) });
        self
    }

    /// The function of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&CustomKey> {
        self.0.get(name)
    }
}
