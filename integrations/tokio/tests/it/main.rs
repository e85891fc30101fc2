//! Calls from tasks, on a runtime of one thread and on one of several, by each kind of connection.

mod support;

use std::time::Duration;

use chronorb::minor;
use chronorb::prelude::*;
use chronorb_integration_tokio::begin;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::timeout;

use support::on_each_runtime;

/// The number of tasks that call at the same time.
const TASKS: i32 = 200;

#[test]
fn calls_of_many_tasks_share_the_connection_of_the_first() {
    on_each_runtime(|pair| async move {
        // While this call lasts, its connection does.
        let numbers = pair.numbers.clone();
        let first = begin(move || numbers.begin_held(7)).await.expect("begun");
        let mut tasks = JoinSet::new();
        for n in 0..TASKS {
            let numbers = pair.numbers.clone();
            tasks.spawn(async move { (n, numbers.begin_twice(n).expect("begun").await) });
        }
        while let Some(result) = tasks.join_next().await {
            let (n, twice) = result.expect("a task");
            assert_eq!(twice, Ok(2 * n));
        }
        pair.gate.open();
        assert_eq!(first.await, Ok(7));
        assert_eq!(pair.accepted(), 1);
        pair
    });
}

#[test]
fn each_task_can_begin_on_a_blocking_thread() {
    on_each_runtime(|pair| async move {
        let mut tasks = JoinSet::new();
        for n in 0..TASKS {
            let numbers = pair.numbers.clone();
            tasks.spawn(async move {
                let call = begin(move || numbers.begin_twice(n)).await.expect("begun");
                (n, call.await)
            });
        }
        while let Some(result) = tasks.join_next().await {
            let (n, twice) = result.expect("a task");
            assert_eq!(twice, Ok(2 * n));
        }
        pair
    });
}

#[test]
fn a_timeout_cancels_its_call() {
    on_each_runtime(|pair| async move {
        let numbers = pair.numbers.clone();
        let held = begin(move || numbers.begin_held(1)).await.expect("begun");
        assert!(timeout(Duration::from_millis(1), held).await.is_err());
        pair.assert_that_no_call_is_under_way().await;
        pair.gate.open();
        pair
    });
}

#[test]
fn the_end_of_a_task_cancels_its_call() {
    on_each_runtime(|pair| async move {
        let numbers = pair.numbers.clone();
        let held = begin(move || numbers.begin_held(1)).await.expect("begun");
        let task = tokio::spawn(held);
        pair.until_held(1).await;
        task.abort();
        assert!(task.await.is_err_and(|error| error.is_cancelled()));
        pair.assert_that_no_call_is_under_way().await;
        pair.gate.open();
        pair
    });
}

#[test]
fn an_unreachable_server_is_an_error_of_the_beginning() {
    on_each_runtime(|pair| async move {
        let server = pair.server.clone();
        spawn_blocking(move || server.shutdown(true))
            .await
            .expect("it does not panic")
            .expect("shut down");
        let numbers = pair.numbers.clone();
        let error = begin(move || numbers.begin_twice(1)).await;
        let error = error.expect_err("there is no server");
        assert_eq!(error.kind, SystemExceptionKind::Transient);
        pair
    });
}

#[test]
fn shutdown_lets_the_calls_of_tasks_complete() {
    on_each_runtime(|pair| async move {
        let mut tasks = JoinSet::new();
        for n in 0..8 {
            let numbers = pair.numbers.clone();
            let call = begin(move || numbers.begin_held(n)).await.expect("begun");
            tasks.spawn(call);
        }
        pair.until_held(8).await;
        let client = pair.client.clone();
        let shutdown = spawn_blocking(move || client.shutdown(true));
        // New calls are refused from the start of the shutdown on.
        let refusal = loop {
            match pair.numbers.begin_twice(1) {
                Ok(call) => assert_eq!(call.await, Ok(2)),
                Err(refusal) => break refusal,
            }
        };
        assert_eq!(refusal.kind, SystemExceptionKind::BadInvOrder);
        assert_eq!(refusal.minor, minor::ORB_SHUT_DOWN);
        assert!(!shutdown.is_finished());
        pair.gate.open();
        let mut sum = 0;
        while let Some(result) = tasks.join_next().await {
            sum += result.expect("a task").expect("a result");
        }
        assert_eq!(sum, (0..8).sum());
        shutdown
            .await
            .expect("it does not panic")
            .expect("shut down");
        pair
    });
}
