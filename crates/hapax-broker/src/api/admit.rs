//! Whether a batch may go to the appender, by its bytes and its topic's settings.

use std::sync::Arc;

use bytes::Bytes;
use kafka_protocol::error::ResponseError;

use crate::batch::{BatchError, Checked, Compression, Header, Keys, Limits, check, convert, working_memory};
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

/// Bytes of memory that looking at a batch may take besides its own, where it is compressed or is to be: such a look is also
/// too long for a thread that serves others. 0: at once, and for nothing.
pub(crate) fn weight(settings: &TopicSettings, records: &[u8]) -> usize {
    let Ok(header) = Header::read(records) else { return 0 };
    let Ok(compression) = header.compression() else { return 0 };
    if header.size > settings.max_message_bytes {
        return 0;
    }
    let limits = Limits::of_topic(settings.max_message_bytes);
    let undone = working_memory(compression, header.size, limits);
    match wanted(settings.compression) {
        Some(wanted) if wanted != compression => undone + settings.max_message_bytes.min(limits.bytes),
        Some(_) | None => undone,
    }
}

/// Checks a batch, and compresses it otherwise where the topic wants that. May take long where [`weight`] is not 0.
pub(crate) fn admit(
    settings: &TopicSettings,
    partition: Arc<Partition>,
    records: Option<Bytes>,
    version: i16,
    now: Timestamp,
) -> Result<NewBatch, Refused> {
    let bytes = records.unwrap_or_default();
    let header = Header::read(&bytes)?;
    let max = settings.max_message_bytes;
    if header.size > max {
        let message = format!("a batch of {} bytes, {max} are allowed", header.size);
        return Err(Refused { code: ResponseError::MessageTooLarge, message: Some(message) });
    }
    let compression = header.compression()?;
    if compression == Compression::Zstd && version < FIRST_WITH_ZSTD {
        return Err(ResponseError::UnsupportedCompressionType.into());
    }
    let keys = if settings.cleanup.compacts() { Keys::Required } else { Keys::Optional };
    let limits = Limits::of_topic(max);
    let wanted = wanted(settings.compression).unwrap_or(compression);
    let (bytes, checked) = if wanted == compression {
        let checked = check(&bytes, keys, limits)?;
        (bytes, checked)
    } else {
        convert(&bytes, keys, limits, (wanted, level(settings, wanted)), max)?
    };
    let time = check_time(settings, &checked, now)?;
    Ok(NewBatch { partition, bytes, header: checked.header, time, held: None })
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
