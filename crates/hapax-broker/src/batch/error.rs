//! What can be wrong with a record batch.

use kafka_protocol::error::ResponseError;

use crate::batch::HEADER;

/// Why a record batch is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// Not even a header.
    #[error("{size} bytes are no record batch: a header alone has {HEADER}")]
    Short {
        /// Bytes that came.
        size: usize,
    },
    /// The length field and the bytes disagree.
    #[error("the batch says it has {said} bytes, {found} came")]
    Length {
        /// Bytes by the length field.
        said: i64,
        /// Bytes that came.
        found: usize,
    },
    /// More than one batch.
    #[error("{extra} bytes follow the one batch that a partition may get per request")]
    Several {
        /// Bytes after the first batch.
        extra: usize,
    },
    /// An old or unknown format.
    #[error("format {magic}, only 2 is served")]
    Magic {
        /// The format.
        magic: i8,
    },
    /// The checksum does not fit.
    #[error("checksum {said:#010x} in the batch, {found:#010x} by its bytes")]
    Checksum {
        /// What the batch says.
        said: u32,
        /// What its bytes give.
        found: u32,
    },
    /// Counts, deltas or ids in the header that cannot be.
    #[error("{field} is {value}: {rule}")]
    Field {
        /// Which field.
        field: &'static str,
        /// What it holds.
        value: i64,
        /// What it must hold.
        rule: &'static str,
    },
    /// A record that cannot be walked, or is not where it must be.
    #[error("record {index}: {fault}")]
    Record {
        /// Which record of the batch, from 0.
        index: u32,
        /// What is wrong.
        fault: &'static str,
    },
    /// A record without a key in a topic that keeps the last value per key.
    #[error("record {index} has no key, and the topic is compacted")]
    NullKey {
        /// Which record of the batch, from 0.
        index: u32,
    },
    /// A compression nobody knows.
    #[error("compression {id} is unknown")]
    Compression {
        /// Its number.
        id: i16,
    },
    /// Compressed bytes that cannot be undone.
    #[error("the {compression} bytes cannot be decompressed: {reason}")]
    Corrupt {
        /// By which compression.
        compression: &'static str,
        /// What the codec says.
        reason: String,
    },
    /// Larger than the topic takes, as it would be kept.
    #[error("the batch has more than the {limit} bytes that are allowed, as it would be kept")]
    Large {
        /// Bytes allowed.
        limit: usize,
    },
    /// More bytes than anybody may make us hold.
    #[error("{compressed} bytes of {compression} become more than {limit}")]
    Bomb {
        /// By which compression.
        compression: &'static str,
        /// Bytes before.
        compressed: usize,
        /// Bytes allowed after.
        limit: usize,
    },
}

impl BatchError {
    /// What a client is told.
    pub fn response(&self) -> ResponseError {
        match self {
            Self::Checksum { .. } => ResponseError::CorruptMessage,
            // As Kafka: clients would send again what is called corrupt, and these bytes do not get better.
            Self::Corrupt { .. } => ResponseError::UnknownServerError,
            Self::Bomb { .. } | Self::Large { .. } => ResponseError::MessageTooLarge,
            Self::Compression { .. } => ResponseError::UnsupportedCompressionType,
            Self::Short { .. }
            | Self::Length { .. }
            | Self::Several { .. }
            | Self::Magic { .. }
            | Self::Field { .. }
            | Self::Record { .. }
            | Self::NullKey { .. } => ResponseError::InvalidRecord,
        }
    }
}
