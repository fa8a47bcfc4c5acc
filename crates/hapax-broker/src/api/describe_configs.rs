//! DescribeConfigs: what holds for topics and for this broker, and why.

use std::sync::Arc;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use kafka_protocol::messages::{DescribeConfigsRequest, DescribeConfigsResponse};
use kafka_protocol::protocol::StrBytes;

use crate::api::config_view::{self, Entry, Source, Writing};
use crate::api::failure::Refusal;
use crate::api::resource::Resource;
use crate::api::{Call, Close};
use crate::broker::Broker;
use crate::catalog::check_name;
use crate::store::Store;

/// Tells settings, all or those asked.
pub(crate) async fn handle<S: Store>(
    broker: &Arc<Broker<S>>,
    _call: &Call,
    request: DescribeConfigsRequest,
) -> Result<DescribeConfigsResponse, Close> {
    let detail = Detail { synonyms: request.include_synonyms, documentation: request.include_documentation };
    let mut results = Vec::with_capacity(request.resources.len());
    for asked in request.resources {
        let found = entries(broker, &asked).await;
        let result = DescribeConfigsResult::default()
            .with_resource_type(asked.resource_type)
            .with_resource_name(asked.resource_name.clone());
        results.push(match found {
            Ok(entries) => {
                let wanted = |entry: &Entry| match &asked.configuration_keys {
                    Some(keys) if !keys.is_empty() => keys.iter().any(|key| **key == *entry.name),
                    Some(_) | None => true,
                };
                result.with_configs(entries.into_iter().filter(wanted).map(|entry| detail.show(entry)).collect())
            }
            Err(refusal) => result.with_error_code(refusal.code()).with_error_message(refusal.text()),
        });
    }
    Ok(DescribeConfigsResponse::default().with_results(results))
}

async fn entries<S: Store>(broker: &Arc<Broker<S>>, asked: &DescribeConfigsResource) -> Result<Vec<Entry>, Refusal> {
    match Resource::of(asked.resource_type)? {
        Resource::Topic => {
            check_name(&asked.resource_name)
                .map_err(|message| Refusal::new(ResponseError::InvalidTopicException, message))?;
            let topic = broker.catalog.topic(&asked.resource_name).await?.ok_or_else(Refusal::unknown_topic)?;
            Ok(config_view::topic(&topic.config, &broker.config.topic_defaults))
        }
        // What is set for all brokers at once: nothing.
        Resource::Broker if asked.resource_name.is_empty() => Ok(Vec::new()),
        Resource::Broker => {
            let me = broker.store.me().0;
            if asked.resource_name.parse() == Ok(me) {
                return Ok(config_view::broker(me, &broker.config));
            }
            let message = format!(
                "Unexpected broker id, expected {me} or empty string, but received {}",
                asked.resource_name.as_str()
            );
            Err(Refusal::new(ResponseError::InvalidRequest, message))
        }
    }
}

/// What the client wants to see of each setting.
struct Detail {
    synonyms: bool,
    documentation: bool,
}

impl Detail {
    fn show(&self, entry: Entry) -> DescribeConfigsResourceResult {
        let text = StrBytes::from_string;
        let synonym = |(name, value, source): (String, String, Source)| {
            DescribeConfigsSynonym::default()
                .with_name(text(name))
                .with_value(Some(text(value)))
                .with_source(source as i8)
        };
        let documentation = self.documentation.then(|| StrBytes::from_static_str(entry.documentation));
        let synonyms = if self.synonyms { entry.synonyms } else { Vec::new() };
        DescribeConfigsResourceResult::default()
            .with_name(text(entry.name))
            .with_value(Some(text(entry.value)))
            .with_read_only(entry.writing == Writing::ReadOnly)
            .with_config_source(entry.source as i8)
            .with_config_type(entry.kind)
            .with_documentation(documentation)
            .with_synonyms(synonyms.into_iter().map(synonym).collect())
    }
}
