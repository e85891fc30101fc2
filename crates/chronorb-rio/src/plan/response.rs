//! Response times under preemptive fixed priorities, by `chronorb-sched`.

pub(super) use chronorb_sched::{BILLION, Load as Task, share};

/// Computes the worst-case response time of a job that is preempted by all tasks `above`, and
/// delayed by at most `blocking` of other work that has begun before.
///
/// # Errors
/// A lower bound of the response time, which exceeds `deadline`. The deadline must not exceed the
/// period.
pub(super) fn response(
    cost: u64,
    deadline: u64,
    blocking: u64,
    above: &[Task],
) -> Result<u64, u64> {
    chronorb_sched::response_within(cost.saturating_add(blocking), deadline, above)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the response times of tasks (period, cost), most urgent first; `None` for those that
    /// miss their deadline.
    fn responses(tasks: &[(u64, u64)]) -> Vec<Option<u64>> {
        let tasks: Vec<_> = tasks
            .iter()
            .map(|(period, cost)| task(*period, *cost))
            .collect();
        let each = tasks.iter().enumerate();
        each.map(|(i, task)| response(task.cost, task.period, 0, &tasks[..i]).ok())
            .collect()
    }

    const fn task(period: u64, cost: u64) -> Task {
        Task {
            cost,
            period,
            jitter: 0,
        }
    }

    #[test]
    fn the_set_of_burns_and_wellings_that_utilisation_alone_does_not_admit_is_admitted() {
        // 1.0 of the processor: 5/20 + 10/40 + 40/80, harmonic.
        assert_eq!(
            responses(&[(20, 5), (40, 10), (80, 40)]),
            [Some(5), Some(15), Some(80)]
        );
    }

    #[test]
    fn the_set_of_burns_and_wellings_whose_last_task_is_late_is_refused() {
        // 12/50 + 10/40 + 10/30 is 0.82, over the bound 0.78 for three, most urgent first.
        assert_eq!(
            responses(&[(30, 10), (40, 10), (50, 12)]),
            [Some(10), Some(20), None]
        );
    }

    #[test]
    fn the_set_of_three_whose_last_response_is_counted_step_by_step() {
        // 3; 3+3 = 6; 5, 11, 14, 17, 20, 20.
        assert_eq!(
            responses(&[(7, 3), (12, 3), (20, 5)]),
            [Some(3), Some(6), Some(20)]
        );
    }

    #[test]
    fn the_pair_of_liu_and_layland_that_only_rate_monotonic_order_admits() {
        assert_eq!(responses(&[(2, 1), (5, 2)]), [Some(1), Some(4)]);
        assert_eq!(responses(&[(5, 2), (2, 1)]), [Some(2), None]);
    }

    #[test]
    fn blocking_and_jitter_of_others_come_on_top() {
        let above = [task(10, 2)];
        assert_eq!(response(3, 20, 0, &above), Ok(5));
        assert_eq!(response(3, 20, 4, &above), Ok(9));
        assert_eq!(response(3, 20, 5, &above), Ok(10));
        assert_eq!(response(3, 20, 6, &above), Ok(13));
        let above = [Task {
            jitter: 8,
            ..above[0]
        }];
        assert_eq!(
            response(3, 20, 0, &above),
            Ok(7),
            "two of them, back to back"
        );
    }

    #[test]
    fn what_is_late_is_so_by_at_least_what_is_told() {
        assert_eq!(response(6, 10, 0, &[task(10, 5)]), Err(11));
        assert_eq!(response(u64::MAX, 10, 1, &[]), Err(u64::MAX));
    }

    /// Simulates the tasks tick by tick over a hyperperiod after a simultaneous release, and
    /// returns the longest response time of each; `None` if one missed its period.
    fn play(tasks: &[(u64, u64)]) -> Vec<Option<u64>> {
        let end = tasks.iter().fold(1, |end, (period, _)| lcm(end, *period));
        let mut left = vec![0; tasks.len()];
        let mut begun = vec![0; tasks.len()];
        let mut longest = vec![Some(0); tasks.len()];
        for now in 0..end {
            for (i, (period, cost)) in tasks.iter().enumerate() {
                if now.is_multiple_of(*period) {
                    if left[i] > 0 {
                        longest[i] = None;
                    }
                    left[i] += cost;
                    begun[i] = now;
                }
            }
            let Some(runs) = left.iter().position(|left| *left > 0) else {
                continue;
            };
            left[runs] -= 1;
            if left[runs] == 0 {
                longest[runs] = longest[runs].map(|it: u64| it.max(now + 1 - begun[runs]));
            }
        }
        // A job may be unfinished at the end of the hyperperiod.
        for (left, longest) in left.iter().zip(&mut longest) {
            if *left > 0 {
                *longest = None;
            }
        }
        longest
    }

    fn lcm(a: u64, b: u64) -> u64 {
        let (mut x, mut y) = (a, b);
        while y > 0 {
            (x, y) = (y, x % y);
        }
        a / x * b
    }

    proptest! {
        #[test]
        fn the_analysis_says_what_a_played_schedule_shows(
            tasks in prop::collection::vec(
                (prop::sample::select(vec![4_u64, 5, 6, 8, 10, 12, 15, 20, 24, 30, 60]), 1..6_u64),
                1..6,
            ),
        ) {
            let tasks = tasks.into_iter().map(|(period, cost)| (period, cost.min(period)));
            let tasks: Vec<_> = tasks.collect();
            let played = play(&tasks);
            for (i, (told, shown)) in responses(&tasks).into_iter().zip(played).enumerate() {
                prop_assert_eq!(told, shown, "task {} of {:?}", i, tasks);
            }
        }

        #[test]
        fn no_start_of_the_others_makes_a_piece_later_than_the_analysis_says(
            above in prop::collection::vec((3..12_u64, 1..3_u64, 0..12_u64), 1..4),
            cost in 1..6_u64,
        ) {
            // The other tasks start at any time. The job starts at 100, when all of them have run
            // for long.
            let tasks = above.iter().map(|(period, cost, _)| task(*period, *cost));
            let tasks: Vec<_> = tasks.collect();
            if let Ok(told) = response(cost, 1000, 0, &tasks) {
                let mut left = vec![0; above.len()];
                let mut own = cost;
                let mut now = 0;
                while own > 0 {
                    for (left, (period, cost, start)) in left.iter_mut().zip(&above) {
                        if now >= *start && (now - start).is_multiple_of(*period) {
                            *left += cost;
                        }
                    }
                    match left.iter_mut().find(|left| **left > 0) {
                        Some(left) => *left -= 1,
                        None if now >= 100 => own -= 1,
                        None => {}
                    }
                    now += 1;
                }
                prop_assert!(now - 100 <= told, "{} against {}", now - 100, told);
            }
        }
    }
}
