//! A member of a group: joins, reads what it is assigned from the committed offset on, commits, rejoins when told.
//!
//! Invariant: it commits only forward from what it was told when it got the partition.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use hapax_kafka::{Client, ClientError, Joined, Membership};

use super::observer::{commit, committed, group_name, read};
use super::{MEMBERS_GROUP, PARTITIONS, Pace, Shared};

const SESSION: Duration = Duration::from_secs(6);
const REBALANCE: Duration = Duration::from_secs(6);
const HEARTBEAT: Duration = Duration::from_millis(500);
const PAUSE: Duration = Duration::from_millis(50);

/// Takes part until the run ends.
pub(super) async fn run(shared: Arc<Shared>, process: u32) {
    let mut client = shared.client(process, REBALANCE + Duration::from_secs(6));
    let mut member = String::new();
    while shared.pace() != Pace::Finish {
        let joined = tokio::select! {
            joined = join(&mut client, &member) => joined,
            () = ended(&shared) => return,
        };
        let (membership, partitions) = match joined {
            Ok(joined) => joined,
            Err(error) => {
                // A coordinator that does not know us gives a new id; one that is busy is asked again with the old.
                if !error.is_retriable() {
                    member.clear();
                }
                tokio::time::sleep(PAUSE).await;
                continue;
            }
        };
        member.clone_from(&membership.member);
        if let Err(error) = consume(&shared, process, &mut client, &membership, &partitions).await
            && forgotten(&error)
        {
            member.clear();
        }
    }
}

async fn ended(shared: &Shared) {
    while shared.pace() != Pace::Finish {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn forgotten(error: &ClientError) -> bool {
    use kafka_protocol::error::ResponseError as E;
    matches!(error.code(), Some(E::UnknownMemberId | E::FencedInstanceId))
}

async fn join(client: &mut Client, member: &str) -> Result<(Membership, Vec<i32>), ClientError> {
    let group = group_name(MEMBERS_GROUP);
    let Joined { membership, members } = client.join_group(&group, member, SESSION, REBALANCE).await?;
    let assignment = client.sync_group(&group, &membership, assign(&members)).await?;
    Ok((membership, assignment.iter().map(|partition| i32::from(*partition)).collect()))
}

/// Each partition to one member, in turn; one byte per partition.
fn assign(members: &[String]) -> Vec<(String, Bytes)> {
    let mut shares: BTreeMap<&String, Vec<u8>> = members.iter().map(|member| (member, Vec::new())).collect();
    for (partition, member) in (0..PARTITIONS).zip(members.iter().cycle()) {
        shares.entry(member).or_default().push(u8::try_from(partition).unwrap_or(u8::MAX));
    }
    shares.into_iter().map(|(member, share)| (member.clone(), Bytes::from(share))).collect()
}

/// Reads and commits until the group must be joined again.
async fn consume(
    shared: &Shared,
    process: u32,
    client: &mut Client,
    membership: &Membership,
    partitions: &[i32],
) -> Result<(), ClientError> {
    let mut positions = BTreeMap::new();
    for partition in partitions {
        let offset = committed(shared, process, client, MEMBERS_GROUP, *partition).await?;
        positions.insert(*partition, offset.unwrap_or(0));
    }
    let mut beat = Instant::now();
    while shared.pace() != Pace::Finish {
        if beat.elapsed() >= HEARTBEAT {
            beat = Instant::now();
            client.heartbeat(&group_name(MEMBERS_GROUP), membership).await?;
        }
        for (partition, position) in &mut positions {
            let next = read(shared, process, client, *partition, *position).await;
            let forward = next > *position;
            *position = next;
            if forward {
                commit(shared, process, client, (MEMBERS_GROUP, membership), (*partition, next)).await?;
            }
        }
        if positions.is_empty() {
            tokio::time::sleep(PAUSE).await;
        }
    }
    Ok(())
}
