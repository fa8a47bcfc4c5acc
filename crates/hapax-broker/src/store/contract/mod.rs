//! What every store must do: the contract of the five traits as tests, generic over how a store is made.
//!
//! A store runs them all with `contract_tests!(make)`, where `make` is an async function without arguments that returns
//! `(guard, store)`: a new, empty store, and whatever must live as long as it (a directory, a database).

#[cfg(test)]
pub(crate) mod brokers;
#[cfg(test)]
pub(crate) mod groups;
#[cfg(test)]
pub(crate) mod log;
#[cfg(test)]
pub(crate) mod model;
#[cfg(test)]
pub(crate) mod producers;
#[cfg(test)]
pub(crate) mod reading;
#[cfg(test)]
pub(crate) mod removing;
#[cfg(test)]
pub(crate) mod topics;

use bytes::Bytes;

use crate::config::TopicConfig;
use crate::model::{Offset, PartitionId, Timestamp, Topic};
use crate::store::{Append, Appended, LedPartition, NewTopic, Row, Store, StoredRow};

/// Makes one test of each part of the contract.
macro_rules! contract_tests {
    ($make:path) => {
        $crate::store::contract::contract_tests! { $make => topics:
            a_topic_is_found_by_name_and_in_the_list, a_name_is_taken_once, names_that_collide_are_taken_once,
            numbers_are_never_given_out_twice,
            a_deleted_topic_leaves_nothing, a_topic_grows_and_never_shrinks, settings_change_only_from_what_was_read
        }
        $crate::store::contract::contract_tests! { $make => log:
            leading_raises_the_epoch_and_reads_the_end, leading_an_unknown_partition_leads_nothing,
            an_append_is_all_or_nothing, another_epoch_is_refused, an_offset_is_written_once,
            epochs_tell_where_they_began, rows_of_many_partitions_go_in_one_group, sizes_are_bytes_of_data
        }
        $crate::store::contract::contract_tests! { $make => reading:
            a_read_begins_with_the_row_that_holds_the_offset, the_first_row_comes_though_it_is_too_large,
            a_read_ends_below_its_bound, a_read_has_at_most_64_rows, a_gap_is_stepped_over,
            a_row_is_found_by_time, a_list_tells_of_rows_without_their_data
        }
        $crate::store::contract::contract_tests! { $make => removing:
            the_log_start_only_moves_forward, trimming_removes_what_is_wholly_below_the_log_start,
            trimming_never_removes_the_last_row, trimming_goes_step_by_step, rows_are_replaced_in_place,
            the_last_row_is_never_replaced
        }
        $crate::store::contract::contract_tests! { $make => model: the_log_does_what_a_model_does }
        $crate::store::contract::contract_tests! { $make => producers:
            blocks_of_ids_never_overlap, a_producer_is_noted_and_forgotten,
            a_transactional_id_changes_only_from_what_was_read, a_snapshot_is_read_as_it_was_saved,
            a_snapshot_is_fenced_and_never_goes_back, active_producers_are_not_forgotten
        }
        $crate::store::contract::contract_tests! { $make => groups:
            a_new_coordinator_reads_what_was_saved, an_old_coordinator_writes_nothing, the_last_offset_of_each_key_counts,
            deleted_groups_take_their_offsets_with_them, single_offsets_are_deleted
        }
        $crate::store::contract::contract_tests! { $make => brokers:
            a_broker_that_joined_is_alive, leaders_are_those_who_led
        }
    };
    ($make:path => $part:ident: $($name:ident),+) => {
        $(
            #[tokio::test]
            async fn $name() {
                let (_guard, store) = $make().await;
                $crate::store::contract::$part::$name(&store).await;
            }
        )+
    };
}
pub(crate) use contract_tests;

/// A topic with partitions.
pub(crate) async fn topic<S: Store>(store: &S, name: &str, partitions: i32) -> Topic {
    let new = NewTopic { name: name.to_owned(), partitions, config: TopicConfig::default() };
    store.create_topic(new).await.unwrap()
}

/// A topic with one partition, which is led.
pub(crate) async fn led<S: Store>(store: &S) -> LedPartition {
    let topic = topic(store, "orders", 1).await;
    let mut led = store.lead(&topic.partitions).await.unwrap();
    assert_eq!(led.len(), 1);
    led.remove(0)
}

/// A row of `size` bytes that names its offset.
pub(crate) fn row(
    partition: PartitionId,
    base_offset: Offset,
    last_offset: Offset,
    high_timestamp: Timestamp,
    size: usize,
) -> Row {
    let mut data = format!("{base_offset:08}").repeat(size / 8 + 1).into_bytes();
    data.truncate(size);
    Row { partition, base_offset, last_offset, high_timestamp, data: Bytes::from(data) }
}

/// Appends rows to one partition, and expects that they are written.
pub(crate) async fn append<S: Store>(store: &S, led: &LedPartition, rows: Vec<Row>) {
    let group = Append { led: vec![(led.partition, led.epoch)], rows };
    assert_eq!(store.append(group).await, Ok(Appended::Done));
}

/// Appends `count` rows of ten offsets and 100 bytes each; the n-th has timestamp 1000 n.
pub(crate) async fn append_tens<S: Store>(store: &S, led: &LedPartition, count: i64) {
    let rows = (0..count).map(|n| row(led.partition, n * 10, n * 10 + 9, n * 1000, 100)).collect();
    append(store, led, rows).await;
}

/// All rows of a partition.
pub(crate) async fn all<S: Store>(store: &S, partition: PartitionId) -> Vec<StoredRow> {
    store.read(partition, 0, Offset::MAX, usize::MAX).await.unwrap()
}

/// Base offsets of rows.
pub(crate) fn bases(rows: &[StoredRow]) -> Vec<Offset> {
    rows.iter().map(|row| row.base_offset).collect()
}
