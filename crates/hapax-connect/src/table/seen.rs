//! The live table as a sink read it last, and what survives when it is read again.
//!
//! Pure. Invariant: a worker that looks again at the same table still knows which columns it has filled. Not here: how
//! a table is read (`inspect.rs` of each dialect).

use std::fmt::Debug;
use std::sync::Arc;

use hapax_engine::sink::TargetIdentity;
use hapax_model::field::FieldPath;

use super::column::LiveColumn;
use super::mapping::Mapping;

/// A live table as it was read, in one dialect.
pub trait Inspection: Debug + Clone + Send + Sync + 'static {
    /// A column of it.
    type Column: LiveColumn;

    /// How it is written.
    fn mapping(&self) -> &Mapping<Self::Column>;

    /// The same, for what is remembered of the table before.
    fn mapping_mut(&mut self) -> &mut Mapping<Self::Column>;

    /// What it is to the contract.
    fn identity(&self) -> &TargetIdentity;
}

/// The live table as it was read last, if it was.
#[derive(Debug)]
pub struct Seen<I>(Option<Arc<I>>);

impl<I> Default for Seen<I> {
    fn default() -> Self {
        Self(None)
    }
}

impl<I: Inspection> Seen<I> {
    /// The table, once it was read.
    #[must_use]
    pub fn table(&self) -> Option<Arc<I>> {
        self.0.clone()
    }

    /// How the table is written, once it was read.
    #[must_use]
    pub fn mapping(&self) -> Option<&Mapping<I::Column>> {
        self.0.as_deref().map(Inspection::mapping)
    }

    /// The fields that columns take: whatever else an event has is unknown to the table.
    #[must_use]
    pub fn fields(&self) -> &[FieldPath] {
        self.mapping().map_or(&[], |mapping| &mapping.fields)
    }

    /// This is the table now.
    pub fn keep(&mut self, table: Arc<I>) {
        self.0 = Some(table);
    }

    /// This is the table now; what `was` known of it stays known if it is the same.
    pub fn keep_after(&mut self, was: &Self, mut table: I) -> TargetIdentity {
        if let Some(was) = was.0.as_deref().filter(|was| was.identity() == table.identity()) {
            table.mapping_mut().remember(was.mapping());
        }
        let identity = table.identity().clone();
        self.keep(Arc::new(table));
        identity
    }
}
