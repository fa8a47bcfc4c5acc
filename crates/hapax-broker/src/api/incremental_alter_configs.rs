//! IncrementalAlterConfigs: sets, removes, adds to and takes from what was said of a topic.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use kafka_protocol::error::ResponseError;
use kafka_protocol::messages::incremental_alter_configs_request::{AlterConfigsResource, AlterableConfig};
use kafka_protocol::messages::incremental_alter_configs_response::AlterConfigsResourceResponse;
use kafka_protocol::messages::{IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse};

use crate::api::alter_configs::{Mode, change};
use crate::api::failure::Refusal;
use crate::api::{Call, Close};
use crate::broker::Broker;
use crate::config::{Kind, Setting, TopicConfig};
use crate::store::Store;

/// Changes settings, or only says whether they could be changed.
pub(crate) async fn handle<S: Store>(
    broker: &Arc<Broker<S>>,
    _call: &Call,
    request: IncrementalAlterConfigsRequest,
) -> Result<IncrementalAlterConfigsResponse, Close> {
    let mode = if request.validate_only { Mode::Check } else { Mode::Write };
    let mut responses = Vec::with_capacity(request.resources.len());
    for asked in request.resources {
        let verdict = alter(broker, &asked, mode).await;
        let response = AlterConfigsResourceResponse::default()
            .with_resource_type(asked.resource_type)
            .with_resource_name(asked.resource_name);
        responses.push(match verdict {
            Ok(()) => response.with_error_message(None),
            Err(refusal) => response.with_error_code(refusal.code()).with_error_message(refusal.text()),
        });
    }
    Ok(IncrementalAlterConfigsResponse::default().with_responses(responses))
}

async fn alter<S: Store>(broker: &Arc<Broker<S>>, asked: &AlterConfigsResource, mode: Mode) -> Result<(), Refusal> {
    let mut named = HashSet::new();
    if !asked.configs.iter().all(|one| named.insert(&one.name)) {
        return Err(Refusal::new(ResponseError::InvalidRequest, "Error due to duplicate config keys"));
    }
    let defaults = &broker.config.topic_defaults;
    change(broker, asked.resource_type, &asked.resource_name, mode, |topic| {
        let mut said = topic.config.0.clone();
        asked.configs.iter().try_for_each(|one| apply(&mut said, defaults, one))?;
        Ok(said)
    })
    .await
}

/// Kafka's numbers of what can be done with a setting.
const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

fn apply(said: &mut BTreeMap<String, String>, defaults: &TopicConfig, one: &AlterableConfig) -> Result<(), Refusal> {
    let name = one.name.to_string();
    let invalid = |message: String| Refusal::new(ResponseError::InvalidConfig, message);
    let setting = Setting::find(&name).ok_or_else(|| invalid(format!("Unknown topic config name: {name}")))?;
    if one.config_operation == DELETE {
        said.remove(&name);
        return Ok(());
    }
    let Some(value) = &one.value else {
        let message = format!("Null value not supported for : {name}");
        return Err(Refusal::new(ResponseError::InvalidRequest, message));
    };
    let (verb, appends) = match one.config_operation {
        SET => {
            said.insert(name, value.to_string());
            return Ok(());
        }
        APPEND => ("APPEND to", true),
        SUBTRACT => ("SUBTRACT from", false),
        other => {
            return Err(Refusal::new(ResponseError::InvalidRequest, format!("Unknown operation {other} on {name}")));
        }
    };
    if !matches!(setting.kind, Kind::List(_)) {
        return Err(invalid(format!("Can't {verb} key {name} because its type is not LIST.")));
    }
    let now = said.get(&name).or_else(|| defaults.0.get(&name)).map_or(setting.default, String::as_str);
    let mut words: Vec<&str> = now.split(',').map(str::trim).filter(|word| !word.is_empty()).collect();
    for word in value.split(',').map(str::trim) {
        match appends {
            true if words.contains(&word) => {}
            true => words.push(word),
            false => words.retain(|other| *other != word),
        }
    }
    let joined = words.join(",");
    said.insert(name, joined);
    Ok(())
}

#[cfg(test)]
mod tests {
    use kafka_protocol::protocol::StrBytes;

    use super::*;

    fn operation(name: &'static str, number: i8, value: &'static str) -> AlterableConfig {
        AlterableConfig::default()
            .with_name(StrBytes::from_static_str(name))
            .with_config_operation(number)
            .with_value(Some(StrBytes::from_static_str(value)))
    }

    /// Goal: the four operations do what Kafka's do. Method: one after the other on one topic's settings.
    #[test]
    fn settings_are_set_removed_extended_and_reduced() {
        let mut said = BTreeMap::new();
        let none = TopicConfig::default();
        let mut run = |one: AlterableConfig| {
            let verdict = apply(&mut said, &none, &one).map_err(|refusal| refusal.code());
            (verdict, said.get("cleanup.policy").cloned(), said.get("retention.ms").cloned())
        };
        let text = |value: &str| Some(value.to_owned());
        assert_eq!(run(operation("retention.ms", SET, "5")), (Ok(()), None, text("5")));
        let both = text("delete,compact");
        assert_eq!(run(operation("cleanup.policy", APPEND, "compact")), (Ok(()), both.clone(), text("5")));
        assert_eq!(run(operation("cleanup.policy", APPEND, "delete")), (Ok(()), both, text("5")), "no word twice");
        assert_eq!(run(operation("cleanup.policy", SUBTRACT, "delete")), (Ok(()), text("compact"), text("5")));
        assert_eq!(run(operation("retention.ms", DELETE, "")), (Ok(()), text("compact"), None));
        let refused = (Err(ResponseError::InvalidConfig.code()), text("compact"), None);
        assert_eq!(run(operation("retention.ms", APPEND, "5")), refused);
        assert_eq!(run(operation("colour", SET, "red")), refused);
        let odd = (Err(ResponseError::InvalidRequest.code()), text("compact"), None);
        assert_eq!(run(operation("retention.ms", 9, "5")), odd);
        assert_eq!(run(operation("retention.ms", SET, "5").with_value(None)), odd);
    }
}
