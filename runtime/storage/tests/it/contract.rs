//! Every promise of `promises.rs` on every kind of storage.
//!
//! Google Cloud Storage is missing: no emulator speaks its XML interface with preconditions. It shares all code above
//! HTTP with S3 and Azure.

macro_rules! on {
    ($kind:ident: $($promise:ident)+) => {
        mod $kind {
            $(
                #[test]
                fn $promise() {
                    crate::promises::$promise(&crate::kinds::$kind());
                }
            )+
        }
    };
}

macro_rules! all_promises {
    ($($kind:ident)+) => {
        $(on! { $kind:
            create_never_replaces_and_overwrite_does
            of_sixteen_concurrent_creators_exactly_one_wins
            lists_a_folder_in_order_with_sizes_and_not_its_namesakes
            a_listing_of_several_pages_is_whole_and_deleting_all_leaves_none
            deleting_twice_is_no_error_and_what_is_gone_is_not_found
            ranges_inside_are_read_and_ranges_beyond_are_errors
            files_go_in_and_out
            large_objects_go_in_and_out_whole
            odd_names_come_back_as_they_were
            readers_see_the_old_or_the_new_content_and_no_mixture
            no_path_leaves_the_folder
            an_injected_fault_says_whether_the_write_may_have_happened
        })+
    };
}

all_promises! { memory file s3 s3_tls azure hdfs }

/// Those for which only a single request can be conditional.
mod objects_beyond_one_request {
    #[test]
    fn are_created_once_on_s3() {
        crate::promises::an_object_beyond_one_request_is_created_once(&crate::kinds::s3());
    }

    #[test]
    fn are_created_once_on_azure() {
        crate::promises::an_object_beyond_one_request_is_created_once(&crate::kinds::azure());
    }
}
