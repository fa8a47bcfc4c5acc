//! Whether a batch may go to the appender, by its bytes and its topic's settings.

use std::sync::Arc;

use bytes::Bytes;
use kafka_protocol::error::ResponseError;

use crate::batch::{BatchError, Checked, Compression, Header, Keys, Limits, check, rewrite_at};
use crate::config::{self, TimestampType, TopicSettings};
use crate::log::{AppendError, NewBatch, Partition, Time};
use crate::model::Timestamp;

/// Why a batch is refused.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refused {
    pub(crate) code: ResponseError,
    pub(crate) message: Option<String>,
}

impl From<ResponseError> for Refused {
    fn from(code: ResponseError) -> Self {
        Self { code, message: None }
    }
}

impl From<BatchError> for Refused {
    fn from(error: BatchError) -> Self {
        Self { code: error.response(), message: Some(error.to_string()) }
    }
}

impl From<AppendError> for Refused {
    fn from(error: AppendError) -> Self {
        Self { code: error.response(), message: Some(error.to_string()) }
    }
}

/// From this version on clients may send zstd.
const FIRST_WITH_ZSTD: i16 = 7;

/// Checks a batch, and compresses it otherwise where the topic wants that.
pub(crate) fn admit(
    settings: &TopicSettings,
    partition: Arc<Partition>,
    records: Option<Bytes>,
    version: i16,
    now: Timestamp,
) -> Result<NewBatch, Refused> {
    let mut bytes = records.unwrap_or_default();
    let header = Header::read(&bytes)?;
    if header.size > settings.max_message_bytes {
        let message = format!("a batch of {} bytes, {} are allowed", header.size, settings.max_message_bytes);
        return Err(Refused { code: ResponseError::MessageTooLarge, message: Some(message) });
    }
    let compression = header.compression()?;
    if compression == Compression::Zstd && version < FIRST_WITH_ZSTD {
        return Err(ResponseError::UnsupportedCompressionType.into());
    }
    let keys = if settings.cleanup.compacts() { Keys::Required } else { Keys::Optional };
    let mut checked = check(&bytes, keys, Limits::default())?;
    let wanted = wanted(settings.compression).unwrap_or(compression);
    if wanted != compression {
        bytes = rewrite_at(&bytes, wanted, level(settings, wanted), Limits::default())?;
        // What was compressed is seen only now.
        checked = check(&bytes, keys, Limits::default())?;
    }
    let time = check_time(settings, &checked, now)?;
    Ok(NewBatch { partition, bytes, header: checked.header, time })
}

/// The compression that a topic insists on.
fn wanted(setting: config::Compression) -> Option<Compression> {
    match setting {
        config::Compression::Producer => None,
        config::Compression::Uncompressed => Some(Compression::None),
        config::Compression::Gzip => Some(Compression::Gzip),
        config::Compression::Snappy => Some(Compression::Snappy),
        config::Compression::Lz4 => Some(Compression::Lz4),
        config::Compression::Zstd => Some(Compression::Zstd),
    }
}

/// How hard the topic wants it.
fn level(settings: &TopicSettings, compression: Compression) -> Option<i32> {
    match compression {
        Compression::Gzip => Some(settings.gzip_level),
        Compression::Zstd => Some(settings.zstd_level),
        Compression::None | Compression::Snappy | Compression::Lz4 => None,
    }
}

/// Whose clock counts, and whether the client's is believable: one bad clock would stop retention.
fn check_time(settings: &TopicSettings, checked: &Checked, now: Timestamp) -> Result<Time, Refused> {
    if settings.timestamp_type == TimestampType::LogAppendTime {
        return Ok(Time::Append);
    }
    let greatest = checked.corrected_timestamp.unwrap_or(checked.header.max_timestamp);
    let late = now.saturating_add(settings.timestamp_after_max_ms);
    let early = now.saturating_sub(settings.timestamp_before_max_ms);
    let is_set = greatest >= 0;
    if checked.header.is_append_time() || is_set && (greatest > late || greatest < early) {
        let message = format!("timestamp {greatest} is not between {early} and {late}, or not the client's");
        return Err(Refused { code: ResponseError::InvalidTimestamp, message: Some(message) });
    }
    Ok(checked.corrected_timestamp.map_or(Time::Kept, Time::Corrected))
}
