//! The session state machine, driven by hand.
//!
//! `scripts/` holds transcripts: what a driver does, and what the session says to it. They are meant
//! to be read; see [`script`] for their form and [`world`] for the commands. To write their outputs
//! anew after a change of behaviour: `REWRITE=1 cargo test -p zk-tests --test session`.

mod command;
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
    a_confirmation_does_not_wait_behind_what_is_suspected
    a_confirmation_leaves_what_was_throttled_alone
    a_demand_for_credentials_can_answer_anything
    a_frame_counts_even_if_it_breaks_the_link
    a_fresh_session_connects
    a_lease_begins_when_the_answered_message_was_sent
    a_link_lost_during_restoration_loses_no_event
    a_lost_link_tells_requests_apart
    a_moved_session_sends_again_what_was_refused
    a_name_that_does_not_resolve_costs_one_attempt
    a_patient_request_that_was_throttled_is_sent_again
    a_throttled_request_outlives_connections
    closing_gives_what_was_throttled_a_last_chance
    a_new_list_of_servers_is_followed_without_doubt
    a_new_session_is_tried_for_without_end
    a_ping_may_be_answered_by_an_error
    a_request_that_is_the_sessions_own_is_refused
    a_read_only_server_is_left_for_a_writable_one
    a_read_only_server_without_sessions_refuses_in_sixteen_bytes
    a_read_only_servers_session_is_shown_to_nobody
    a_refused_operation_holds_others_back_until_the_connection_has_shown_to_live
    a_refused_restoration_is_tried_again_ever_more_slowly
    a_reply_can_say_that_the_session_is_gone
    a_reply_that_was_not_due_breaks_the_link
    a_request_can_be_withdrawn_before_it_is_sent
    a_request_is_not_blamed_for_being_unlucky
    a_request_that_costs_its_connections_is_found_out
    a_request_that_is_passed_over_is_not_waited_for_for_ever
    a_server_behind_the_client_closes_without_a_word
    a_server_says_that_the_session_has_expired
    a_server_that_hangs_is_left
    a_session_is_resumed
    a_silent_server_is_left
    a_slow_reply_keeps_the_link_as_long_as_it_grows
    a_slow_reply_keeps_the_link_as_long_as_pings_are_answered_in_time
    a_slow_request_keeps_the_link_as_long_as_it_leaves
    a_recursive_watch_tells_what_the_other_kind_would
    a_watch_leans_on_one_that_stands
    a_watch_that_others_need_is_not_removed
    a_wrong_password_ends_like_an_expiry
    after_a_long_sleep_the_session_has_expired_before_anything_else
    an_answer_to_the_handshake_is_not_taken_at_its_word
    an_error_has_no_body
    an_event_is_heard_before_the_reply_behind_it
    an_older_server_does_not_know_persistent_watches
    an_unanswered_ping_ends_the_link_although_bytes_trickle
    another_session_id_means_that_ours_has_expired
    bytes_of_a_lost_link_do_not_reach_the_next_one
    closing_ends_in_time_or_with_the_link
    closing_idle_takes_one_round_trip
    closing_waits_for_what_was_submitted_before
    closing_without_a_connection_tries_for_one
    closing_without_a_session_has_nothing_to_do
    credentials_precede_watches_precede_requests
    detaching_leaves_the_session_to_others
    events_that_nobody_understands_are_passed_over
    frames_are_those_of_real_servers_and_clients
    frames_that_cannot_be_read_break_the_link
    however_a_link_is_lost_requests_fare_alike
    late_timers_fire_in_the_order_of_their_weight
    outcomes_come_in_the_order_of_submission
    pauses_grow_with_each_round
    persistent_watches_hear_of_the_gap
    pings_come_when_nothing_else_is_sent
    refused_credentials_end_the_session
    requests_too_large_are_refused_at_once
    restoration_keeps_to_the_limit_for_requests
    servers_that_are_all_behind_cost_the_session_its_life
    ten_thousand_watches_are_restored_in_batches
    there_is_room_for_so_many_requests
    where_nobody_may_ask_for_writable_servers_they_are_tried
    who_cannot_prove_who_they_are_is_left
    who_we_are_is_proved_before_anything_else
    who_does_not_wait_for_connections_is_told_at_once
    without_any_server_the_session_expires_in_time
    xids_wrap_to_one
}
