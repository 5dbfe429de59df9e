//! What every backend must do, checked against ordinary maps. Also included by the tests of `streamkeeper-state-rocksdb`.

pub mod cases;
pub mod job;
pub mod model;
pub mod walk;

use std::sync::Arc;

use streamkeeper_state::Backend;

/// A backend under test.
pub trait Fixture {
    /// A new process's backend with so many bytes for state, or with more if it cannot evict.
    fn backend(&self, budget: usize) -> Arc<dyn Backend>;

    /// How many random walks of each kind are worth their time.
    fn walks(&self) -> u64;
}

#[macro_export]
macro_rules! contract_tests {
    ($fixture:expr) => {
        $crate::contract_tests!($fixture; cases:
            an_inserted_row_exists_only_once_written,
            a_removed_row_is_gone_and_can_begin_anew,
            equal_keys_of_one_batch_share_a_slot,
            scans_give_the_rows_of_a_prefix_in_key_order,
            prefixes_are_those_with_rows_also_after_a_restore,
            every_type_comes_back_from_every_format,
            expired_rows_are_never_returned,
            reads_refresh_ttl_only_if_declared,
            b58_ttl_switched_on_at_a_restore_counts_from_then,
            r21_refers_only_to_confirmed_uploads,
            r22_no_two_snapshots_write_the_same_file,
            r28_a_full_checkpoint_refers_to_no_earlier_file,
            r39_a_frozen_state_does_not_see_later_changes,
            b14_an_aborted_checkpoints_changes_are_in_the_next,
            b41_a_second_rescale_keeps_one_table_a_name,
            b43_groups_of_others_are_not_restored,
            a_savepoint_stands_alone_and_changes_nothing_for_later_checkpoints,
            deltas_are_folded_into_a_base,
            dropped_tables_and_changed_columns_are_refused_by_name,
            a_canonical_savepoint_takes_added_and_dropped_columns,
            a_missing_or_torn_file_is_named,
        );
        $crate::contract_tests!($fixture; walk:
            x13_random_walks_of_parallelism_equal_the_model,
            x13_random_walks_with_evictions_equal_the_model,
        );
    };
    ($fixture:expr; $module:ident: $($name:ident,)+) => {
        $(#[test] fn $name() { contract::$module::$name(&$fixture); })+
    };
}
