//! Upkeep over every store: the same stories, generic over how a store is made, as the contract of the stores.

#[cfg(test)]
pub(crate) mod compaction;
#[cfg(test)]
pub(crate) mod retention;

/// Makes one test of each story; `make` is an async function that returns `(guard, store)`, a new and empty store.
macro_rules! upkeep_tests {
    ($make:path) => {
        $crate::upkeep::contract::upkeep_tests! { $make => retention:
            old_records_go_from_the_front, too_many_bytes_go_from_the_front, without_a_limit_nothing_goes,
            records_without_a_time_wait_for_the_next, rows_below_a_moved_log_start_go, idle_producers_are_forgotten,
            a_stop_saves_what_changed, snapshots_come_after_enough_bytes_or_time
        }
        $crate::upkeep::contract::upkeep_tests! { $make => compaction:
            the_last_value_of_each_key_stays_at_its_offset, little_memory_takes_more_passes,
            young_records_and_a_clean_log_are_left_alone, a_tombstone_stays_for_its_time_and_goes,
            a_retry_is_recognised_after_compaction_removed_its_batch, a_batch_that_cannot_be_read_is_passed_over,
            a_reader_sees_the_last_values_while_producing_goes_on, a_reader_in_the_middle_misses_no_key
        }
    };
    ($make:path => $part:ident: $($name:ident),+) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let (_guard, store) = $make().await;
                $crate::upkeep::contract::$part::$name(std::sync::Arc::new(store)).await;
            }
        )+
    };
}
pub(crate) use upkeep_tests;
