//! AlterConfigs: replaces everything that was said of a topic.

use std::collections::BTreeMap;
use std::sync::Arc;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::alter_configs_request::AlterConfigsResource;
use kafka_protocol::messages::alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::messages::{AlterConfigsRequest, AlterConfigsResponse};

use crate::api::failure::Refusal;
use crate::api::resource::Resource;
use crate::api::{Call, Close};
use crate::broker::Broker;
use crate::config::TopicConfig;
use crate::model::Topic;
use crate::store::{Store, StoreError};

/// Replaces settings, or only says whether they could be replaced.
pub(crate) async fn handle<S: Store>(
    broker: &Arc<Broker<S>>,
    _call: &Call,
    request: AlterConfigsRequest,
) -> Result<AlterConfigsResponse, Close> {
    let mode = if request.validate_only { Mode::Check } else { Mode::Write };
    let mut responses = Vec::with_capacity(request.resources.len());
    for asked in request.resources {
        let verdict = replace(broker, &asked, mode).await;
        let response = AlterConfigsResourceResponse::default()
            .with_resource_type(asked.resource_type)
            .with_resource_name(asked.resource_name);
        responses.push(match verdict {
            Ok(()) => response.with_error_message(None),
            Err(refusal) => response.with_error_code(refusal.code()).with_error_message(refusal.text()),
        });
    }
    Ok(AlterConfigsResponse::default().with_responses(responses))
}

/// Whether a change is made or only judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    Write,
    Check,
}

async fn replace<S: Store>(broker: &Arc<Broker<S>>, asked: &AlterConfigsResource, mode: Mode) -> Result<(), Refusal> {
    let mut said = BTreeMap::new();
    for one in &asked.configs {
        let Some(value) = &one.value else {
            let message = format!("Null value not supported for : {}", one.name.as_str());
            return Err(Refusal::new(ResponseError::InvalidRequest, message));
        };
        if said.insert(one.name.to_string(), value.to_string()).is_some() {
            return Err(Refusal::new(ResponseError::InvalidRequest, "Error due to duplicate config keys"));
        }
    }
    change(broker, asked.resource_type, &asked.resource_name, mode, |_| Ok(said.clone())).await
}

/// Changes what was said of a topic, again if somebody else was faster.
pub(crate) async fn change<S: Store>(
    broker: &Arc<Broker<S>>,
    resource: i8,
    name: &str,
    mode: Mode,
    decide: impl Fn(&Topic) -> Result<BTreeMap<String, String>, Refusal>,
) -> Result<(), Refusal> {
    if Resource::of(resource)? == Resource::Broker {
        let message = "A broker's settings are in its configuration file, and do not change while it runs.";
        return Err(Refusal::new(ResponseError::InvalidRequest, message));
    }
    if !broker.lead.leads() {
        return Err(Refusal::not_controller());
    }
    for _ in 0..ATTEMPTS {
        let topic = broker.catalog.topic(name).await?.ok_or_else(Refusal::unknown_topic)?;
        let config = TopicConfig::checked(decide(&topic)?)
            .map_err(|error| Refusal::new(ResponseError::InvalidConfig, error.to_string()))?;
        if mode == Mode::Check {
            return Ok(());
        }
        match broker.configure_topic(&topic, config).await {
            Ok(_) => return Ok(()),
            Err(StoreError::Conflict) => broker.catalog.refresh().await?,
            Err(error) => return Err(error.into()),
        }
    }
    Err(Refusal::from(StoreError::Conflict))
}

/// How often a change is decided anew because another came between.
const ATTEMPTS: usize = 5;
