//! Why a producer is refused, and the one place that says by which of Kafka's codes.

use kafka_protocol::error::ResponseError;

/// Which request is answered: some codes are too new for some clients.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// Produce.
    Produce,
    /// InitProducerId, in this version.
    InitProducerId(i16),
}

/// Why a producer is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProducerError {
    /// Its sequence was written already, and not as one of the last five batches.
    #[error("producer {producer_id} sends sequence {sequence} again, {expected} is next")]
    DuplicateSequence {
        /// Who.
        producer_id: i64,
        /// What it sent.
        sequence: i32,
        /// What comes next.
        expected: i32,
    },
    /// Sequences before it are missing.
    #[error("producer {producer_id} sends sequence {sequence}, {expected} is next")]
    OutOfOrderSequence {
        /// Who.
        producer_id: i64,
        /// What it sent.
        sequence: i32,
        /// What comes next.
        expected: i32,
    },
    /// A newer one has its place.
    #[error("producer {producer_id} has epoch {epoch}, {expected_epoch} is current")]
    ProducerFenced {
        /// Who.
        producer_id: i64,
        /// What it has.
        epoch: i16,
        /// What is current.
        expected_epoch: i16,
    },
    /// An id that was never given out. A batch without state is accepted, so Produce never says this.
    #[error("producer {producer_id} is unknown")]
    UnknownProducerId {
        /// Who.
        producer_id: i64,
    },
    /// It wrote as if its transaction were in another state than it is.
    #[error("producer {producer_id} is not in the transaction that its batch says")]
    InvalidTransactionState {
        /// Who.
        producer_id: i64,
    },
    /// Its transaction is still being ended.
    #[error("transactional id \"{transactional_id}\" has a transaction under way")]
    ConcurrentTransactions {
        /// Of which id.
        transactional_id: String,
    },
    /// A transactional id without a letter.
    #[error("the transactional id is empty")]
    EmptyTransactionalId,
    /// A producer id without an epoch, or an epoch without an id.
    #[error("producer id {producer_id} and epoch {epoch} are given together or not at all")]
    HalfNamed {
        /// The id given.
        producer_id: i64,
        /// The epoch given.
        epoch: i16,
    },
    /// A transaction may not stay open for so long, or for no time.
    #[error("a transaction timeout of {timeout_ms} ms is not between 1 and {}", super::init_producer::TIMEOUT_MAX_MS)]
    InvalidTimeout {
        /// What was asked.
        timeout_ms: i32,
    },
}

impl ProducerError {
    /// The code that the client is told.
    pub fn to_kafka_error(&self, asked: Asked) -> ResponseError {
        match self {
            // No broker sends 46: clients take it for success without an offset.
            Self::DuplicateSequence { .. } | Self::OutOfOrderSequence { .. } => ResponseError::OutOfOrderSequenceNumber,
            Self::ProducerFenced { .. } => match asked {
                Asked::InitProducerId(version) if version >= 4 => ResponseError::ProducerFenced,
                Asked::InitProducerId(_) | Asked::Produce => ResponseError::InvalidProducerEpoch,
            },
            Self::UnknownProducerId { .. } => ResponseError::UnknownProducerId,
            Self::InvalidTransactionState { .. } => ResponseError::InvalidTxnState,
            Self::ConcurrentTransactions { .. } => ResponseError::ConcurrentTransactions,
            Self::EmptyTransactionalId | Self::HalfNamed { .. } => ResponseError::InvalidRequest,
            Self::InvalidTimeout { .. } => ResponseError::InvalidTransactionTimeout,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: each refusal has the code that Kafka's clients expect, by version where it matters. Method: the whole list.
    #[test]
    fn each_refusal_has_the_code_of_kafka() {
        let fenced = ProducerError::ProducerFenced { producer_id: 1, epoch: 2, expected_epoch: 3 };
        let cases = [
            (ProducerError::DuplicateSequence { producer_id: 1, sequence: 2, expected: 3 }, Asked::Produce, 45),
            (ProducerError::OutOfOrderSequence { producer_id: 1, sequence: 4, expected: 3 }, Asked::Produce, 45),
            (fenced.clone(), Asked::Produce, 47),
            (fenced.clone(), Asked::InitProducerId(3), 47),
            (fenced, Asked::InitProducerId(4), 90),
            (ProducerError::UnknownProducerId { producer_id: 1 }, Asked::InitProducerId(4), 59),
            (ProducerError::InvalidTransactionState { producer_id: 1 }, Asked::Produce, 48),
            (ProducerError::ConcurrentTransactions { transactional_id: "t".into() }, Asked::InitProducerId(4), 51),
            (ProducerError::EmptyTransactionalId, Asked::InitProducerId(0), 42),
            (ProducerError::HalfNamed { producer_id: 1, epoch: -1 }, Asked::InitProducerId(4), 42),
            (ProducerError::InvalidTimeout { timeout_ms: 0 }, Asked::InitProducerId(0), 50),
        ];
        for (error, asked, code) in cases {
            assert_eq!(error.to_kafka_error(asked).code(), code, "{error}");
        }
    }
}
