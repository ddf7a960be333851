//! The session state machine, driven by hand.
//!
//! `scripts/` holds transcripts: what a driver does, and what the session says to it. They are meant
//! to be read; see [`script`] for their form and [`world`] for the commands. To write their outputs
//! anew after a change of behaviour: `REWRITE=1 cargo test -p zk-tests --test all session::`.

mod command;
mod leases;
mod limits;
mod request;
mod script;
mod serve;
mod show;
mod wire;
mod world;

/// Makes a test of each script, and a test that there are no others.
macro_rules! scripts {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            script::run(stringify!($name));
        })*

        #[test]
        fn every_script_is_run() {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/session/scripts");
            let listed = [$(stringify!($name)),*].map(|name| format!("{name}.txt"));
            let mut there = std::fs::read_dir(folder)
                .expect("there are scripts")
                .map(|entry| entry.expect("they can be listed").file_name())
                .filter(|name| !listed.iter().any(|listed| name == &**listed))
                .peekable();
            assert!(there.peek().is_none(), "not listed in main.rs: {:?}", there.collect::<Vec<_>>());
        }
    };
}

scripts! {
    confirmation_does_not_wait_for_suspects
    confirmation_spares_throttled_requests
    auth_required_may_answer_any_request
    frame_counts_even_if_it_breaks_the_link
    a_fresh_session_connects
    lease_begins_when_the_request_was_sent
    link_lost_during_restore_loses_no_event
    a_lost_link_tells_requests_apart
    moved_session_resends_refused_requests
    multi_result_can_be_about_the_session
    unresolvable_name_costs_one_attempt
    throttled_patient_request_is_resent
    refused_watch_misleads_no_read
    refusal_may_come_out_of_turn
    refused_watch_takes_no_other_along
    withdrawn_watch_takes_no_other_along
    read_that_has_lost_its_watch_takes_no_other_along
    throttled_removal_of_watches_is_retried
    waiting_removal_is_not_repeated
    a_throttled_request_outlives_connections
    close_retries_throttled_requests_once
    new_server_list_causes_no_doubt
    a_new_session_is_tried_for_without_end
    a_ping_may_be_answered_by_an_error
    reserved_operation_is_refused
    read_only_server_is_left_for_a_writable
    read_only_server_refuses_with_16_bytes
    read_only_session_id_is_not_published
    read_only_member_neither_ends_nor_closes_a_session
    refused_operation_delays_others
    refused_restore_is_retried_with_backoff
    replaced_recursive_watch_carries_no_more
    a_reply_can_say_that_the_session_is_gone
    a_reply_that_was_not_due_breaks_the_link
    unsent_request_can_be_withdrawn
    unlucky_request_is_not_blamed
    poisonous_request_is_identified
    poisonous_request_is_identified_beside_a_confirmation
    skipped_request_is_not_awaited_for_ever
    stale_server_closes_silently
    server_reports_session_expiry
    a_server_that_hangs_is_left
    a_session_is_resumed
    a_silent_server_is_left
    slow_reply_keeps_the_link_while_growing
    slow_reply_keeps_the_link_while_pinged
    slow_request_keeps_the_link_while_sent
    recursive_watch_covers_the_other_kind
    last_replacement_of_a_recursive_watch_counts
    failed_read_leaves_no_watch_of_others
    a_watch_leans_on_one_that_stands
    a_watch_that_others_need_is_not_removed
    a_wrong_password_ends_like_an_expiry
    session_expires_first_after_a_long_sleep
    handshake_reply_is_validated
    an_error_has_no_body
    event_is_delivered_before_later_replies
    old_server_lacks_persistent_watches
    requests_do_not_put_off_the_ping_behind_what_is_owed
    unanswered_ping_ends_a_trickling_link
    other_session_id_means_expiry
    lost_link_leaves_no_bytes_for_the_next
    closing_ends_in_time_or_with_the_link
    closing_idle_takes_one_round_trip
    close_waits_for_earlier_requests
    close_without_connection_dials_again
    close_without_session_does_nothing
    auth_then_watches_then_requests
    detaching_leaves_the_session_to_others
    unknown_events_are_skipped
    frames_match_real_servers_and_clients
    unreadable_frames_break_the_link
    requests_fare_alike_in_any_link_loss
    late_timers_fire_by_priority
    outcomes_come_in_the_order_of_submission
    pauses_grow_with_each_round
    persistent_watches_hear_of_the_gap
    pings_come_when_nothing_else_is_sent
    refused_credentials_end_the_session
    requests_too_large_are_refused_at_once
    restore_respects_the_request_limit
    session_expires_if_all_servers_lag
    many_watches_are_restored_in_batches
    there_is_room_for_so_many_requests
    servers_are_dialed_without_a_mode_probe
    unauthenticated_server_is_left
    sasl_comes_before_everything_else
    unproved_server_fires_no_watch
    fail_fast_request_fails_at_once
    session_expires_in_time_without_servers
    xids_wrap_to_one
}
