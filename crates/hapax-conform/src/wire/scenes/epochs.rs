//! Fetch, ListOffsets and OffsetForLeaderEpoch of clients that know an old epoch, the leader's, or one that is not yet.

use anyhow::{Context as _, Result, ensure};
use kafka_protocol::messages::BrokerId;
use kafka_protocol::messages::fetch_request::FetchPartition;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use kafka_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderEpochRequest, OffsetForLeaderPartition, OffsetForLeaderTopic,
};

use super::super::batch::Batch;
use super::produce::{Place, fetch, find, produce, same_epoch};
use super::{Script, Stage, topic_name, topics};

/// A topic of an earlier scene; its six records were written under the first epoch.
const TOPIC: &str = "listed";

/// After a restart: `stage.epoch` is old now.
pub(super) async fn play(script: &mut Script, stage: &Stage) -> Result<()> {
    let metadata = topics::wait(script, TOPIC).await?;
    let partition = metadata.topics.first().and_then(|topic| topic.partitions.first());
    let epoch = partition.context("a partition")?.leader_epoch;
    ensure!(epoch > stage.epoch, "a restart does not raise the epoch {}: it is {epoch}", stage.epoch);
    script.name("leader_epoch", epoch, "<later epoch>");
    script.name("diverging_epoch.epoch", stage.epoch, "<epoch>");
    script.name("diverging_epoch.epoch", epoch, "<later epoch>");
    let known = [
        ("no epoch", -1),
        ("the old epoch", stage.epoch),
        ("the epoch before", epoch - 1),
        ("an epoch that never was", -2),
        ("the later epoch", epoch),
        ("a future epoch", epoch + 1),
    ];
    let place = find(script, TOPIC).await?;
    for (what, current) in known {
        for version in 9..=18 {
            fetching(script, version, what, &place, current).await?;
        }
        for version in 4..=10 {
            listing(script, version, what, current).await?;
        }
        for version in 2..=4 {
            for (asked, of) in [("old", stage.epoch), ("later", epoch), ("future", epoch + 1)] {
                ending(script, version, &format!("after a restart: {what}, the end of the {asked} one"), current, of)
                    .await?;
            }
        }
    }
    let answer = script.ask(12, &produce(12, &place, 0, Batch::plain(3).bytes())).await?;
    ensure!(answer.responses[0].partition_responses[0].error_code == 0, "{answer:?}");
    for version in 2..=4 {
        for (asked, of) in [("old", stage.epoch), ("later", epoch)] {
            ending(script, version, &format!("after a write: the end of the {asked} epoch"), epoch, of).await?;
        }
    }
    diverging(script, &place, stage.epoch, epoch).await
}

async fn fetching(script: &mut Script, version: i16, what: &str, place: &Place, current: i32) -> Result<()> {
    let partition = FetchPartition::default().with_fetch_offset(0).with_partition_max_bytes(1 << 20);
    let request = fetch(version, place, partition.with_current_leader_epoch(current));
    script.say_but(version, &format!("after a restart: {what}"), &request, same_epoch).await?;
    Ok(())
}

async fn listing(script: &mut Script, version: i16, what: &str, current: i32) -> Result<()> {
    let partition = ListOffsetsPartition::default().with_timestamp(-1).with_current_leader_epoch(current);
    let topic = ListOffsetsTopic::default().with_name(topic_name(TOPIC)).with_partitions(vec![partition]);
    let request = ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![topic]);
    script.say(version, &format!("after a restart: {what}"), &request).await?;
    Ok(())
}

async fn ending(script: &mut Script, version: i16, what: &str, current: i32, of: i32) -> Result<()> {
    let asked = OffsetForLeaderPartition::default().with_current_leader_epoch(current).with_leader_epoch(of);
    let topic = OffsetForLeaderTopic::default().with_topic(topic_name(TOPIC)).with_partitions(vec![asked]);
    let mut request = OffsetForLeaderEpochRequest::default().with_topics(vec![topic]);
    if version >= 3 {
        request.replica_id = BrokerId(-1);
    }
    script.say(version, what, &request).await?;
    Ok(())
}

/// A reader that says in which epoch its last record was written.
async fn diverging(script: &mut Script, place: &Place, old: i32, later: i32) -> Result<()> {
    for version in 12..=18 {
        for (what, offset, last) in [
            ("read in the old epoch", 3, old),
            ("read all of the old epoch", 6, old),
            ("read more than the old epoch had", 8, old),
            ("read in the later epoch", 8, later),
            ("read in the later epoch, past the end", 77, later),
            ("read in a future epoch", 8, later + 1),
            ("read before all epochs", 3, -2),
        ] {
            let partition = FetchPartition::default().with_fetch_offset(offset).with_partition_max_bytes(1 << 20);
            let partition = partition.with_current_leader_epoch(later).with_last_fetched_epoch(last);
            script.say_but(version, what, &fetch(version, place, partition), same_epoch).await?;
        }
    }
    Ok(())
}
