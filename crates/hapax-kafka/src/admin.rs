//! Topics made and removed. Everything else an administrator may want is a request: [`Client::call`].

use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::{CreateTopicsRequest, DeleteTopicsRequest};
use kafka_protocol::protocol::StrBytes;

use super::cluster::{Client, topic_name};
use super::error::{ClientError, check};

/// How long the broker may take.
const TIMEOUT_MS: i32 = 30_000;

impl Client {
    /// Makes a topic; -1 partitions: as many as the broker gives by default.
    ///
    /// # Errors
    /// If the broker says no (`TopicAlreadyExists` among others), or nobody answers.
    pub async fn create_topic(
        &mut self,
        name: &str,
        partitions: i32,
        config: &[(&str, &str)],
    ) -> Result<(), ClientError> {
        let text = |text: &str| StrBytes::from_string(text.to_owned());
        let setting = |(name, value): &(&str, &str)| {
            CreatableTopicConfig::default().with_name(text(name)).with_value(Some(text(value)))
        };
        let topic = CreatableTopic::default()
            .with_name(topic_name(name))
            .with_num_partitions(partitions)
            .with_replication_factor(-1)
            .with_configs(config.iter().map(setting).collect());
        let request = CreateTopicsRequest::default().with_topics(vec![topic]).with_timeout_ms(TIMEOUT_MS);
        let answer = self.call(i16::MAX, &request).await?;
        let result = answer.topics.first();
        let why = result.and_then(|topic| topic.error_message.as_deref()).unwrap_or_default();
        check(result.map_or(-1, |topic| topic.error_code), || format!("topic {name} could not be made: {why}"))
    }

    /// Removes a topic.
    ///
    /// # Errors
    /// If the broker says no (`UnknownTopicOrPartition` among others), or nobody answers.
    pub async fn delete_topic(&mut self, name: &str) -> Result<(), ClientError> {
        let connection = self.any().await?;
        let version = connection.version::<DeleteTopicsRequest>(i16::MAX)?;
        let request = DeleteTopicsRequest::default().with_timeout_ms(TIMEOUT_MS);
        let request = if version >= 6 {
            request.with_topics(vec![DeleteTopicState::default().with_name(Some(topic_name(name)))])
        } else {
            request.with_topic_names(vec![topic_name(name)])
        };
        let answer = connection.call_at(version, &request).await?;
        let code = answer.responses.first().map_or(-1, |topic| topic.error_code);
        check(code, || format!("topic {name} could not be removed"))
    }
}
