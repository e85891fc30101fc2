//! User and system exceptions.

use chronorb::{CompletionStatus, SystemException, SystemExceptionKind};

use super::{NIL, Subject};
use crate::idl::*;
use crate::values::{entry, point};
use crate::{Failure, Report};

pub(super) fn check_user(subject: &Subject, report: &mut Report) -> Result<(), Failure> {
    let faulty = subject.hub.get_faulty()?.ok_or(NIL)?;

    report.check("raise_user 0 raises nothing", || {
        Ok(faulty.raise_user(0)? == 0)
    });
    report.raises("raise_user 1", faulty.raise_user(1), |e| {
        *e == RaiseUserErrorBuf::Plain(Plain)
    });
    let refused = |code, reason: &str| RefusedBuf {
        code,
        reason: reason.to_owned(),
    };
    report.raises("raise_user 2", faulty.raise_user(2), |e| {
        *e == RaiseUserErrorBuf::Refused(refused(-2, "refused"))
    });
    let detailed = DetailedBuf {
        shade: Color::Violet,
        r#where: point(1.5, -2.5),
        trace: vec![3, 2, 1],
        cause: entry("cause", 3),
    };
    report.raises("raise_user 3", faulty.raise_user(3), |e| {
        *e == RaiseUserErrorBuf::Detailed(detailed.clone())
    });
    report.check("raise_user 4 raises nothing", || {
        Ok(faulty.raise_user(4)? == 4)
    });

    report.echo("echo_even", 4, 7, |v, io| faulty.echo_even(*v, io));
    report.raises("echo_even odd", faulty.echo_even(-5, &mut 1), |e| {
        *e == EchoEvenErrorBuf::Refused(refused(-5, "odd"))
    });

    let mistaken = Mistaken::unchecked_narrow(faulty.as_object());
    for (what, code) in [("without", 1), ("with", 2)] {
        let name = format!("an exception {what} members that the caller does not know");
        report.raises(&name, mistaken.raise_user(code), |e| {
            let MistakenRaiseUserErrorBuf::System(e) = e else {
                return false;
            };
            e.kind == SystemExceptionKind::Unknown
        });
    }
    report.raises(
        "an exception that the caller knows after them",
        mistaken.raise_user(3),
        |e| *e == MistakenRaiseUserErrorBuf::Detailed(detailed.clone()),
    );
    Ok(())
}

pub(super) fn check_system(subject: &Subject, report: &mut Report) -> Result<(), Failure> {
    let faulty = subject.hub.get_faulty()?.ok_or(NIL)?;

    let statuses = [
        CompletionStatus::Yes,
        CompletionStatus::No,
        CompletionStatus::Maybe,
    ];
    for (number, &kind) in SystemExceptionKind::ALL.iter().enumerate() {
        let minor = 0x4f4d_0000 + number as u32;
        check_kind(
            &faulty,
            report,
            SystemException::new(kind, minor, statuses[number % 3]),
        );
    }
    for completed in statuses {
        let kind = SystemExceptionKind::NoResources;
        check_kind(&faulty, report, SystemException::new(kind, 0, completed));
    }
    check_kind(
        &faulty,
        report,
        SystemException::maybe(SystemExceptionKind::Internal, u32::MAX),
    );

    report.raises(
        "raise_system without such a name",
        faulty.raise_system("SURPRISE", 1, 0),
        |e| *e == NO_SUCH_NAME,
    );
    report.raises(
        "raise_system without such a status",
        faulty.raise_system("MARSHAL", 1, 3),
        |e| *e == NO_SUCH_NAME,
    );
    report.check("raise_user after all of them", || {
        Ok(faulty.raise_user(9)? == 9)
    });
    Ok(())
}

fn check_kind(faulty: &Faulty, report: &mut Report, exception: SystemException) {
    let SystemException {
        kind,
        minor,
        completed,
    } = exception;
    let status = match completed {
        CompletionStatus::Yes => 0,
        CompletionStatus::No => 1,
        CompletionStatus::Maybe => 2,
    };
    let name = format!("{} minor {minor} completed {completed}", kind.name());
    let outcome = faulty.raise_system(kind.name(), minor, status);
    if LATE.contains(&kind) && outcome == Err(NO_SUCH_NAME) {
        report.skip(&name, "the server does not know it");
    } else {
        report.raises(&name, outcome, |e| *e == exception);
    }
}

/// The answer of a server to an unknown name.
const NO_SUCH_NAME: SystemException = SystemException::no(SystemExceptionKind::BadParam, 0);
/// Exceptions of CORBA 3, which not every ORB has.
const LATE: [SystemExceptionKind; 4] = [
    SystemExceptionKind::InvalidActivity,
    SystemExceptionKind::ActivityCompleted,
    SystemExceptionKind::ActivityRequired,
    SystemExceptionKind::ThreadCancelled,
];
