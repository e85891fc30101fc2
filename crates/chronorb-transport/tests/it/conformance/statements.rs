//! The lists of statements, by what they hold for. Other crates take their pick too, for transports
//! of their own.

/// Makes one test of each statement.
macro_rules! statements {
    ($subject:expr; $($module:ident: $($statement:ident)+;)+) => {
        $($(
            #[test]
            fn $statement() {
                let test = concat!(module_path!(), "::", stringify!($statement));
                crate::conformance::$module::$statement(&$subject.of_test(test));
            }
        )+)+
    };
}

/// The statements that hold for all octets from the connecting side to the accepting side.
macro_rules! statements_of_any {
    ($subject:expr) => {
        statements! {
            $subject;
            any:
                what_is_sent_arrives_in_order
                two_pieces_arrive_as_one
                every_published_address_can_be_connected_to
                endpoints_do_not_hear_of_each_other
                what_an_endpoint_cannot_be_is_refused_by_name
                addresses_of_another_form_are_refused
                a_connection_knows_its_properties
                an_acceptor_without_peers_gives_nothing_and_does_not_wait;
            waits:
                receiving_ends_at_the_deadline_and_can_go_on
                a_wait_with_a_limit_ends_by_it
                where_nothing_is_there_nobody_waits
                every_edge_is_told
                an_interrupted_connection_lets_nobody_wait
                a_thread_that_waits_already_is_called_by_a_kick
                signals_do_not_keep_a_receiver_from_its_end
                shutting_down_wakes_who_waits
                a_connection_with_something_to_say_is_stale;
        }
    };
}

/// The statements of transports by which octets go both ways.
macro_rules! statements_of_two_ways {
    ($subject:expr) => {
        statements! {
            $subject;
            two_way:
                octets_go_both_ways_at_the_same_time
                each_client_has_a_connection_of_its_own
                the_connecting_side_waits_and_is_called_as_the_other
                after_its_shutdown_a_connection_carries_nothing;
        }
    };
}

/// The statements of transports that carry a stream.
macro_rules! statements_of_streams {
    ($subject:expr) => {
        statements! {
            $subject;
            streams:
                octets_of_any_cut_arrive_whole
                pieces_of_any_length_arrive_one_after_the_other
                what_does_not_fit_is_left_without_waiting
                who_could_not_send_is_told_of_room
                a_peer_that_takes_nothing_ends_the_wait_at_the_deadline
                signals_do_not_keep_a_sender_from_its_end
                the_end_comes_after_what_was_sent
                after_an_error_no_octet_comes
                a_connection_whose_peer_is_gone_is_stale
                where_nobody_listens_nobody_is_connected
                a_peer_that_is_cut_off_is_told_at_once
                shutting_down_wakes_who_sends;
        }
    };
}
