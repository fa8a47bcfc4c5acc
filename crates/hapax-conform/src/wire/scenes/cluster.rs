//! What is asked of the cluster: DescribeCluster, DescribeLogDirs, FindCoordinator, and what we answer cheaply.

use anyhow::Result;
use kafka_protocol::messages::create_acls_request::{AclCreation, CreateAclsRequest};
use kafka_protocol::messages::delete_acls_request::{DeleteAclsFilter, DeleteAclsRequest};
use kafka_protocol::messages::describe_log_dirs_request::{DescribableLogDirTopic, DescribeLogDirsRequest};
use kafka_protocol::messages::elect_leaders_request::{ElectLeadersRequest, TopicPartitions};
use kafka_protocol::messages::list_partition_reassignments_request::{
    ListPartitionReassignmentsRequest, ListPartitionReassignmentsTopics,
};
use kafka_protocol::messages::{
    DescribeAclsRequest, DescribeClientQuotasRequest, DescribeClusterRequest, FindCoordinatorRequest,
};

use super::{Script, Stage, text, topic_name};

pub(super) async fn play(script: &mut Script, stage: &Stage) -> Result<()> {
    for version in 0..=2 {
        let mut request = DescribeClusterRequest::default();
        script.say(version, "the cluster", &request).await?;
        request.include_cluster_authorized_operations = true;
        script.say(version, "what one may do", &request).await?;
    }
    let odd = DescribeClusterRequest::default().with_endpoint_type(7);
    script
        .say_but(1, "an unknown kind of endpoint", &odd, |response| {
            response.error_message = response.error_message.take().map(|_| text("(words)"));
        })
        .await?;
    for version in 1..=4 {
        directories(script, version, stage).await?;
    }
    for version in 0..=6 {
        coordinators(script, version).await?;
    }
    elections(script, stage).await?;
    permissions(script).await?;
    for version in 0..=1 {
        script.say(version, "quotas", &DescribeClientQuotasRequest::default()).await?;
    }
    Ok(())
}

async fn directories(script: &mut Script, version: i16, stage: &Stage) -> Result<()> {
    for (what, topic, partitions) in [
        ("a topic", stage.topic, vec![0, 1]),
        ("an unknown topic", "nowhere", vec![0]),
        ("no partition", stage.topic, vec![9]),
    ] {
        let topic = DescribableLogDirTopic::default().with_topic(topic_name(topic)).with_partitions(partitions);
        script
            .say_but(version, what, &DescribeLogDirsRequest::default().with_topics(Some(vec![topic])), |response| {
                for result in &mut response.results {
                    result.log_dir = text("(a path)");
                    (result.total_bytes, result.usable_bytes) = (0, 0);
                    for topic in &mut result.topics {
                        topic.partitions.sort_by_key(|partition| partition.partition_index);
                    }
                }
            })
            .await?;
    }
    Ok(())
}

async fn coordinators(script: &mut Script, version: i16) -> Result<()> {
    for (what, kind, key) in
        [("of a group", 0, "a-group"), ("of a transaction", 1, "a-transaction"), ("of nothing", 9, "x")]
    {
        if version == 0 && kind != 0 {
            continue;
        }
        let mut request = FindCoordinatorRequest::default().with_key_type(kind);
        if version >= 4 {
            request.coordinator_keys = vec![text(key)];
        } else {
            request.key = text(key);
        }
        // Apache Kafka makes the topics behind it at the first question, and says 15 until they are there.
        let ready = |answer: &kafka_protocol::messages::FindCoordinatorResponse| {
            let codes = answer.coordinators.iter().map(|found| found.error_code).chain([answer.error_code]);
            kind == 9 || codes.into_iter().all(|code| code == 0)
        };
        script.patient(version, &request, ready).await?;
        script
            .say_but(version, what, &request, |response| {
                response.error_message = response.error_message.take().map(|_| text("(words)"));
                for found in &mut response.coordinators {
                    found.error_message = found.error_message.take().map(|_| text("(words)"));
                }
            })
            .await?;
    }
    Ok(())
}

async fn elections(script: &mut Script, stage: &Stage) -> Result<()> {
    for version in 0..=2 {
        for (what, topic) in [("an election that is not needed", stage.topic), ("an unknown topic", "nowhere")] {
            let topic = TopicPartitions::default().with_topic(topic_name(topic)).with_partitions(vec![0]);
            let request =
                ElectLeadersRequest::default().with_topic_partitions(Some(vec![topic])).with_timeout_ms(30_000);
            script
                .say_but(version, what, &request, |response| {
                    for result in
                        response.replica_election_results.iter_mut().flat_map(|topic| &mut topic.partition_result)
                    {
                        result.error_message = result.error_message.take().map(|_| text("(words)"));
                    }
                })
                .await?;
        }
    }
    for (what, topic) in [("no reassignment", stage.topic), ("an unknown topic", "nowhere")] {
        let topic =
            ListPartitionReassignmentsTopics::default().with_name(topic_name(topic)).with_partition_indexes(vec![0]);
        let request =
            ListPartitionReassignmentsRequest::default().with_topics(Some(vec![topic])).with_timeout_ms(30_000);
        script.say(0, what, &request).await?;
    }
    Ok(())
}

async fn permissions(script: &mut Script) -> Result<()> {
    for version in 1..=3 {
        let all = DescribeAclsRequest::default()
            .with_resource_type_filter(1)
            .with_pattern_type_filter(1)
            .with_operation(1)
            .with_permission_type(1);
        script
            .say_but(version, "permissions", &all, |response| {
                response.error_message = response.error_message.take().map(|_| text("(words)"));
            })
            .await?;
        let rule = AclCreation::default()
            .with_resource_type(2)
            .with_resource_name(text("x"))
            .with_resource_pattern_type(3)
            .with_principal(text("User:x"))
            .with_host(text("*"))
            .with_operation(3)
            .with_permission_type(3);
        script
            .say_but(version, "a permission", &CreateAclsRequest::default().with_creations(vec![rule]), |response| {
                for result in &mut response.results {
                    result.error_message = result.error_message.take().map(|_| text("(words)"));
                }
            })
            .await?;
        let filter = DeleteAclsFilter::default()
            .with_resource_type_filter(1)
            .with_pattern_type_filter(1)
            .with_operation(1)
            .with_permission_type(1);
        script
            .say_but(version, "no permissions", &DeleteAclsRequest::default().with_filters(vec![filter]), |response| {
                for result in &mut response.filter_results {
                    result.error_message = result.error_message.take().map(|_| text("(words)"));
                }
            })
            .await?;
    }
    Ok(())
}
