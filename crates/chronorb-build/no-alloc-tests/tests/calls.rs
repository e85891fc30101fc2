//! Test that calls of every kind, including those that raise exceptions, do not allocate in client
//! or server.

use chronorb::prelude::*;
use chronorb_no_alloc_tests::gauge::plant::{
    Busy, Gauge, GaugeServant, GaugeSkeleton, Grade, MeanError, QualityError, ReadError, Report,
    Sample, Silent,
};
use chronorb_rt::{CountingAllocator, forbid};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

struct Boiler;

impl GaugeServant for Boiler {
    fn name<'a>(&self, _: &Call<'a>) -> Result<&'a str, SystemException> {
        forbid(|| Ok("boiler"))
    }

    fn limit(&self, _: &Call<'_>) -> Result<f64, SystemException> {
        Ok(90.5)
    }

    fn set_limit(&self, _: &Call<'_>, _: f64) -> Result<(), SystemException> {
        Ok(())
    }

    fn read<'a>(
        &self,
        call: &Call<'a>,
        sensor: &'a str,
        most: u32,
    ) -> Result<Report<'a>, ReadError<'a>> {
        forbid(|| {
            if most == 0 {
                let last = Grade::Bad;
                return Err(Silent { sensor, last }.into());
            }
            let samples = call.fill(most as usize, |at| Sample {
                value: 0.5,
                at: at as u64,
            })?;
            Ok(Report {
                sensor,
                samples,
                remark: "Größe",
            })
        })
    }

    fn quality<'a>(&self, _: &Call<'a>, sensor: &'a str) -> Result<Grade, QualityError<'a>> {
        match sensor {
            "busy" => Err(Busy.into()),
            "dead" => Err(Silent {
                sensor,
                last: Grade::Unsure,
            }
            .into()),
            _ => Ok(Grade::Good),
        }
    }

    fn mean<'a>(&self, _: &Call<'a>, of: &'a [Sample]) -> Result<Sample, MeanError> {
        of.last().copied().ok_or_else(|| Busy.into())
    }

    fn calibrate<'a>(
        &self,
        _: &Call<'a>,
        what: &mut Report<'a>,
    ) -> Result<&'a str, SystemException> {
        what.sensor = "calibrated";
        Ok("boiler")
    }

    fn note<'a>(&self, _: &Call<'a>, _: &'a str) -> Result<(), SystemException> {
        Ok(())
    }
}

/// One call of each kind.
fn all_kinds(gauge: &Gauge, scope: &mut Scope) {
    assert_eq!(gauge.name_in(scope), Ok("boiler"));
    assert_eq!(gauge.limit(), Ok(90.5));
    assert_eq!(gauge.set_limit(1.0), Ok(()));

    let report = gauge.read_in(scope, "t1", 3).expect("samples");
    assert_eq!((report.sensor, report.remark), ("t1", "Größe"));
    assert_eq!(report.samples[2], Sample { value: 0.5, at: 2 });
    let silent = Silent {
        sensor: "t1",
        last: Grade::Bad,
    };
    assert_eq!(
        gauge.read_in(scope, "t1", 0),
        Err(ReadError::Silent(silent))
    );

    assert_eq!(gauge.quality_in(scope, "t2"), Ok(Grade::Good));
    assert_eq!(
        gauge.quality_in(scope, "busy"),
        Err(QualityError::Busy(Busy))
    );
    let error = gauge.quality_in(scope, "dead").expect_err("it is dead");
    assert!(matches!(error, QualityError::Silent(s) if s.sensor == "dead"));

    assert_eq!(gauge.mean(&[]), Err(MeanError::Busy(Busy)));
    let sample = Sample { value: 1.5, at: 9 };
    assert_eq!(gauge.mean(&[sample]), Ok(sample));

    let mut report = Report {
        sensor: "t3",
        samples: &[sample],
        remark: "",
    };
    assert_eq!(gauge.calibrate_in(scope, &mut report), Ok("boiler"));
    assert_eq!(report.sensor, "calibrated");
    assert_eq!(gauge.note("seen"), Ok(()));
}

#[test]
fn every_kind_of_call_goes_without_allocation() {
    let args = |more: &[&str]| {
        let args = ["test", "-ORBCollocation", "off"].iter().chain(more);
        args.map(|arg| (*arg).to_owned()).collect::<Vec<_>>()
    };
    let server = Orb::init(&mut args(&["-ORBListenEndpoints", "iiop://127.0.0.1:0"])).expect("orb");
    let root = server.root_poa().expect("a POA");
    let object = root.serve(GaugeSkeleton::new(Boiler)).expect("served");
    root.manager().activate().expect("activated");

    let client = Orb::init(&mut args(&[])).expect("an ORB");
    let object = client
        .string_to_object(&server.object_to_string(&object))
        .expect("the reference reads");
    let gauge = Gauge::unchecked_narrow(&object);
    let mut scope = Scope::new(64 << 10);
    // The first calls connect.
    for _ in 0..20 {
        all_kinds(&gauge, &mut scope);
    }
    forbid(|| {
        for _ in 0..100 {
            all_kinds(&gauge, &mut scope);
        }
    });
}
