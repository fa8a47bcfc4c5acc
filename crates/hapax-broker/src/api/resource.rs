//! What settings can be of, by Kafka's numbers.

use kafka_protocol::error::ResponseError;

use crate::api::failure::Refusal;

/// What has settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resource {
    Topic,
    Broker,
}

/// Kafka's numbers of what has settings here.
pub(crate) const TOPIC: i8 = 2;
pub(crate) const BROKER: i8 = 4;
/// Kafka's numbers of what has no settings here: loggers, client metrics, groups.
pub(crate) const OTHERS: [i8; 3] = [8, 16, 32];

impl Resource {
    pub(crate) fn of(number: i8) -> Result<Self, Refusal> {
        match number {
            TOPIC => Ok(Self::Topic),
            BROKER => Ok(Self::Broker),
            _ => {
                let message =
                    format!("Unsupported resource type {number}: topics (2) and brokers (4) have settings here.");
                Err(Refusal::new(ResponseError::InvalidRequest, message))
            }
        }
    }
}
