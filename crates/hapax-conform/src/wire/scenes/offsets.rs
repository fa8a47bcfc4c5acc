//! ListOffsets, OffsetForLeaderEpoch, DeleteRecords.

use anyhow::Result;
use kafka_protocol::messages::BrokerId;
use kafka_protocol::messages::delete_records_request::{
    DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic,
};
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic};
use kafka_protocol::messages::offset_for_leader_epoch_request::{
    OffsetForLeaderEpochRequest, OffsetForLeaderPartition, OffsetForLeaderTopic,
};

use super::super::batch::{Batch, TIME};
use super::produce::{place, produce};
use super::{Script, Stage, topic_name};

pub(super) async fn play(script: &mut Script, stage: &Stage) -> Result<()> {
    let there = place(script, "listed").await?;
    script.ask(12, &produce(12, &there, 0, Batch::plain(3).bytes())).await?;
    let later = Batch { first_time: TIME + 10_000, ..Batch::plain(3) };
    script.ask(12, &produce(12, &there, 0, later.bytes())).await?;
    for version in 1..=10 {
        listing(script, version, stage).await?;
    }
    for version in 2..=4 {
        epochs(script, version, stage).await?;
    }
    for version in 0..=2 {
        deleting(script, version).await?;
    }
    Ok(())
}

async fn listing(script: &mut Script, version: i16, stage: &Stage) -> Result<()> {
    let at = |timestamp: i64| {
        let partition = ListOffsetsPartition::default().with_timestamp(timestamp);
        if version >= 4 { partition.with_current_leader_epoch(-1) } else { partition }
    };
    let request = |topic: &str, partition: ListOffsetsPartition| {
        let topic = ListOffsetsTopic::default().with_name(topic_name(topic)).with_partitions(vec![partition]);
        ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![topic])
    };
    for (what, timestamp) in [
        ("the start", -2),
        ("the end", -1),
        ("a time before all", 5),
        ("the first time", TIME),
        ("between two", TIME + 1500),
        ("between two batches", TIME + 5000),
        ("a time after all", TIME + 1_000_000),
    ] {
        script.say(version, what, &request("listed", at(timestamp))).await?;
    }
    if version >= 2 {
        let committed = request("listed", at(-1)).with_isolation_level(1);
        script.say(version, "the end of what is committed", &committed).await?;
    }
    if version >= 4 {
        for (what, epoch) in [("the leader's epoch", stage.epoch), ("a future epoch", stage.epoch + 5)] {
            let partition = at(-1).with_current_leader_epoch(epoch);
            script.say(version, what, &request("listed", partition)).await?;
        }
    }
    for (since, what, timestamp) in
        [(7, "the greatest time", -3), (8, "the local start", -4), (9, "the tiered end", -5)]
    {
        if version >= since {
            script.say(version, what, &request("listed", at(timestamp))).await?;
        }
    }
    script.say(version, "an odd time", &request("listed", at(-77))).await?;
    script.say(version, "an unknown topic", &request("nowhere", at(-1))).await?;
    script.say(version, "an unknown partition", &request("listed", at(-1).with_partition_index(9))).await?;
    Ok(())
}

async fn epochs(script: &mut Script, version: i16, stage: &Stage) -> Result<()> {
    for (what, topic, partition, current, epoch) in [
        ("the leader's epoch", "listed", 0, -1, stage.epoch),
        ("a future epoch", "listed", 0, -1, stage.epoch + 3),
        ("the leader in a future epoch", "listed", 0, stage.epoch + 5, stage.epoch),
        ("an unknown topic", "nowhere", 0, -1, 0),
        ("an unknown partition", "listed", 9, -1, 0),
    ] {
        let asked = OffsetForLeaderPartition::default()
            .with_partition(partition)
            .with_current_leader_epoch(current)
            .with_leader_epoch(epoch);
        let topic = OffsetForLeaderTopic::default().with_topic(topic_name(topic)).with_partitions(vec![asked]);
        let mut request = OffsetForLeaderEpochRequest::default().with_topics(vec![topic]);
        if version >= 3 {
            request.replica_id = BrokerId(-1);
        }
        script.say(version, what, &request).await?;
    }
    Ok(())
}

async fn deleting(script: &mut Script, version: i16) -> Result<()> {
    let name = format!("trimmed-{version}");
    let there = place(script, &name).await?;
    for _ in 0..2 {
        script.ask(12, &produce(12, &there, 0, Batch::plain(3).bytes())).await?;
    }
    for (what, topic, partition, offset) in [
        ("the first record", name.as_str(), 0, 1),
        ("the same again", name.as_str(), 0, 1),
        ("what is gone already", name.as_str(), 0, 0),
        ("more than there is", name.as_str(), 0, 77),
        ("a negative offset", name.as_str(), 0, -7),
        ("all", name.as_str(), 0, -1),
        ("an unknown topic", "nowhere", 0, 0),
        ("an unknown partition", name.as_str(), 9, 0),
    ] {
        let asked = DeleteRecordsPartition::default().with_partition_index(partition).with_offset(offset);
        let topic = DeleteRecordsTopic::default().with_name(topic_name(topic)).with_partitions(vec![asked]);
        let request = DeleteRecordsRequest::default().with_topics(vec![topic]).with_timeout_ms(30_000);
        script.say(version, what, &request).await?;
    }
    let partition = ListOffsetsPartition::default().with_timestamp(-2);
    let topic = ListOffsetsTopic::default().with_name(topic_name(&name)).with_partitions(vec![partition]);
    let request = ListOffsetsRequest::default().with_replica_id(BrokerId(-1)).with_topics(vec![topic]);
    script.say(1, "the start after a deletion", &request).await?;
    Ok(())
}
