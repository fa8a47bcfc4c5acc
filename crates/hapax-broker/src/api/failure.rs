//! From what a store says to what Kafka's clients understand.

use kafka_protocol::error::ResponseError;
use kafka_protocol::protocol::StrBytes;

use crate::store::StoreError;

/// The code for an administrative request that the store did not do.
pub(crate) fn store_code(error: &StoreError) -> ResponseError {
    match error {
        StoreError::Fenced => ResponseError::NotController,
        // Worth a retry, and clients do.
        StoreError::Conflict | StoreError::InDoubt(_) | StoreError::Away(_) => ResponseError::RequestTimedOut,
        StoreError::Full(_) | StoreError::Broken(_) | StoreError::Damaged(_) => ResponseError::KafkaStorageError,
    }
}

/// A refusal of one part of a request: code and words.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refusal {
    pub(crate) error: ResponseError,
    pub(crate) message: String,
}

impl Refusal {
    pub(crate) fn new(error: ResponseError, message: impl Into<String>) -> Self {
        Self { error, message: message.into() }
    }

    pub(crate) fn code(&self) -> i16 {
        self.error.code()
    }

    pub(crate) fn text(&self) -> Option<StrBytes> {
        Some(StrBytes::from_string(self.message.clone()))
    }

    pub(crate) fn unknown_topic() -> Self {
        Self::new(ResponseError::UnknownTopicOrPartition, "This server does not host this topic-partition.")
    }

    pub(crate) fn unknown_topic_id() -> Self {
        Self::new(ResponseError::UnknownTopicId, "This server does not host this topic ID.")
    }

    pub(crate) fn not_controller() -> Self {
        Self::new(ResponseError::NotController, "Another broker leads; ask for metadata again.")
    }
}

impl From<&StoreError> for Refusal {
    fn from(error: &StoreError) -> Self {
        Self::new(store_code(error), error.to_string())
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::from(&error)
    }
}
