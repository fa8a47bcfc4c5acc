//! DescribeConfigs, AlterConfigs, IncrementalAlterConfigs, ListConfigResources.

use anyhow::Result;
use kafka_protocol::messages::describe_configs_request::{DescribeConfigsRequest, DescribeConfigsResource};
use kafka_protocol::messages::describe_configs_response::DescribeConfigsResponse;
use kafka_protocol::messages::{
    AlterConfigsRequest, IncrementalAlterConfigsRequest, ListConfigResourcesRequest, alter_configs_request as whole,
    incremental_alter_configs_request as step,
};

use super::{Script, Stage, text, topics};

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const ODD: i8 = 99;

pub(super) async fn play(script: &mut Script, stage: &Stage) -> Result<()> {
    topics::create(script, "settings", 1).await?;
    for version in 0..=2 {
        altering(script, version).await?;
    }
    for version in 0..=1 {
        stepping(script, version).await?;
    }
    for version in 1..=4 {
        describing(script, version, stage).await?;
    }
    for version in 0..=1 {
        script
            .say_but(version, "what has settings", &ListConfigResourcesRequest::default(), |response| {
                // The brokers hold different topics; that the question is answered is what counts.
                response.config_resources.clear();
            })
            .await?;
    }
    Ok(())
}

/// Descriptions and synonyms are each broker's own; values, sources and kinds are compared.
fn tidy(response: &mut DescribeConfigsResponse) {
    for result in &mut response.results {
        result.error_message = result.error_message.take().map(|_| text("(words)"));
        result.configs.sort_by(|one, other| one.name.cmp(&other.name));
        for config in &mut result.configs {
            config.synonyms.clear();
            config.documentation = None;
        }
    }
}

async fn describing(script: &mut Script, version: i16, stage: &Stage) -> Result<()> {
    let resource = |kind: i8, name: &str, keys: Option<&[&str]>| {
        let keys = keys.map(|keys| keys.iter().map(|key| text(key)).collect());
        let resource = DescribeConfigsResource::default().with_resource_type(kind).with_resource_name(text(name));
        DescribeConfigsRequest::default().with_resources(vec![resource.with_configuration_keys(keys)])
    };
    let some = ["retention.ms", "cleanup.policy", "max.message.bytes", "compression.type", "no.such.setting"];
    script.say_but(version, "some settings", &resource(TOPIC, "settings", Some(&some)), tidy).await?;
    script.say_but(version, "untouched settings", &resource(TOPIC, stage.topic, Some(&some)), tidy).await?;
    script.say_but(version, "no settings", &resource(TOPIC, "settings", Some(&[])), tidy).await?;
    script.say_but(version, "an unknown topic", &resource(TOPIC, "nowhere", None), tidy).await?;
    script.say_but(version, "a bad name", &resource(TOPIC, "bad name!", None), tidy).await?;
    script.say_but(version, "an unknown kind", &resource(ODD, "x", None), tidy).await?;
    let node = stage.node.to_string();
    script
        .say_but(version, "the broker's", &resource(BROKER, &node, None), |response| {
            tidy(response);
            response.results.iter_mut().for_each(|result| result.configs.clear());
        })
        .await?;
    script.say_but(version, "another broker's", &resource(BROKER, "4711", None), tidy).await?;
    Ok(())
}

async fn altering(script: &mut Script, version: i16) -> Result<()> {
    for (what, kind, name, key, value) in [
        ("a setting", TOPIC, "settings", "retention.ms", Some("1000000")),
        ("an unknown setting", TOPIC, "settings", "no.such.setting", Some("1")),
        ("a wrong value", TOPIC, "settings", "retention.ms", Some("soon")),
        ("no value", TOPIC, "settings", "retention.ms", None),
        ("an unknown topic", TOPIC, "nowhere", "retention.ms", Some("1000000")),
        ("an unknown kind", ODD, "x", "retention.ms", Some("1000000")),
    ] {
        let config = whole::AlterableConfig::default().with_name(text(key)).with_value(value.map(text));
        let resource = whole::AlterConfigsResource::default().with_resource_type(kind).with_resource_name(text(name));
        let request = AlterConfigsRequest::default().with_resources(vec![resource.with_configs(vec![config])]);
        script
            .say_but(version, what, &request, |response| {
                for result in &mut response.responses {
                    result.error_message = result.error_message.take().map(|_| text("(words)"));
                }
            })
            .await?;
    }
    Ok(())
}

async fn stepping(script: &mut Script, version: i16) -> Result<()> {
    let (set, delete, append, subtract) = (0, 1, 2, 3);
    for (what, kind, name, key, operation, value) in [
        ("set", TOPIC, "settings", "retention.ms", set, Some("2000000")),
        ("set and look only", TOPIC, "settings", "retention.ms", set, Some("3000000")),
        ("delete", TOPIC, "settings", "max.message.bytes", delete, None),
        ("append", TOPIC, "settings", "cleanup.policy", append, Some("compact")),
        ("subtract", TOPIC, "settings", "cleanup.policy", subtract, Some("compact")),
        ("append to a number", TOPIC, "settings", "retention.ms", append, Some("1")),
        ("an unknown operation", TOPIC, "settings", "retention.ms", 9, Some("1")),
        ("an unknown setting", TOPIC, "settings", "no.such.setting", set, Some("1")),
        ("a wrong value", TOPIC, "settings", "cleanup.policy", set, Some("burn")),
        ("no value", TOPIC, "settings", "retention.ms", set, None),
        ("an unknown topic", TOPIC, "nowhere", "retention.ms", set, Some("1000000")),
        ("an unknown kind", ODD, "x", "retention.ms", set, Some("1000000")),
    ] {
        let config = step::AlterableConfig::default().with_name(text(key)).with_value(value.map(text));
        let resource = step::AlterConfigsResource::default().with_resource_type(kind).with_resource_name(text(name));
        let resource = resource.with_configs(vec![config.with_config_operation(operation)]);
        let request = IncrementalAlterConfigsRequest::default()
            .with_resources(vec![resource])
            .with_validate_only(what == "set and look only");
        script
            .say_but(version, what, &request, |response| {
                for result in &mut response.responses {
                    result.error_message = result.error_message.take().map(|_| text("(words)"));
                }
            })
            .await?;
    }
    Ok(())
}
