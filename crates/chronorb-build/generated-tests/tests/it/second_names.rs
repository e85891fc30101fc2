//! Implementation and calls of definitions whose names would become one in Rust.

use std::sync::Arc;

use chronorb::prelude::*;
use chronorb_generated_tests::second_names::devices;

use crate::ways::in_one_orb;

type Result<T> = std::result::Result<T, SystemException>;

/// Counts calls in its log level.
#[derive(Default)]
struct Device(std::sync::atomic::AtomicI32);

impl devices::DeviceServant for Device {
    fn log_level(&self, _: &Call<'_>) -> Result<i32> {
        Ok(self.0.load(std::sync::atomic::Ordering::Relaxed))
    }

    fn set_log_level_(&self, _: &Call<'_>, value: i32) -> Result<()> {
        self.0.store(value, std::sync::atomic::Ordering::Relaxed);
        Ok(())
    }

    fn set_log_level(&self, call: &Call<'_>, log_level: i32, log_level_: i32) -> Result<()> {
        self.set_log_level_(call, 10 * log_level + log_level_)
    }

    fn name<'a>(&self, _: &Call<'a>) -> Result<&'a str> {
        Ok("device")
    }

    fn name_in_(&self, call: &Call<'_>) -> Result<()> {
        self.set_log_level_(call, 100)
    }

    fn begin_name_(&self, call: &Call<'_>) -> Result<()> {
        self.set_log_level_(call, 200)
    }
}

struct Log;

impl devices::LogServant for Log {
    fn write_records<'a>(&self, _: &Call<'a>, e: &devices::EntryBuf_<'a>) -> Result<&'a str> {
        Ok(e.text)
    }
}

impl devices::OwnLogServant for Log {
    fn write_records_<'a>(&self, _: &Call<'a>, _: &devices::EntryBuf_<'a>) -> Result<&'a str> {
        Ok("own")
    }

    fn narrow_(&self, _: &Call<'_>) -> Result<()> {
        Ok(())
    }
}

struct Robot;

impl devices::ModelServant for Robot {
    fn get_profile<'a>(&self, _: &Call<'a>) -> Result<&'a str> {
        Ok("model")
    }
}

impl devices::ViewServant for Robot {
    fn get_profile<'a>(&self, _: &Call<'a>) -> Result<&'a str> {
        Ok("view")
    }
}

impl devices::RobotServant for Robot {
    fn get_profile__<'a>(&self, _: &Call<'a>) -> Result<&'a str> {
        Ok("robot")
    }
}

impl devices::ArmServant for Robot {}

impl devices::NamedServant for Robot {
    fn full_name<'a>(&self, _: &Call<'a>) -> Result<&'a str> {
        Ok("full_name")
    }
}

impl devices::CalledServant for Robot {
    fn full_name<'a>(&self, _: &Call<'a>) -> Result<&'a str> {
        Ok("fullName")
    }
}

impl devices::BothServant for Robot {}

#[test]
fn definitions_of_one_name_are_called_by_their_second_names() {
    in_one_orb(|root| {
        let skeleton = devices::DeviceSkeleton::new(Device::default());
        let device = root.serve(skeleton).expect("served");
        let device = devices::Device::unchecked_narrow(&device);
        device.set_log_level(1, 2).expect("the operation");
        assert_eq!(device.log_level(), Ok(12));
        device.set_log_level_(3).expect("the attribute");
        assert_eq!(device.log_level(), Ok(3));
        device.name_in_().expect("the operation");
        assert_eq!(device.log_level(), Ok(100));
        device.begin_name_().expect("the operation");
        assert_eq!(device.log_level(), Ok(200));
        assert_eq!(
            device.begin_name().and_then(|reply| reply.wait()),
            Ok("device".into())
        );

        let log = root
            .serve(devices::OwnLogSkeleton::new(Log))
            .expect("served");
        let log = devices::OwnLog::unchecked_narrow(&log);
        let entry = devices::EntryBuf_ { text: "inherited" };
        assert_eq!(log.write_records(&entry), Ok("inherited".into()));
        assert_eq!(log.write_records_(&entry), Ok("own".into()));
        assert_eq!(log.narrow_(), Ok(()));

        let arm = root
            .serve(devices::ArmSkeleton::new(Robot))
            .expect("served");
        let arm = devices::Arm::unchecked_narrow(&arm);
        let got = [arm.get_profile(), arm.get_profile_(), arm.get_profile__()];
        assert_eq!(got, ["model", "view", "robot"].map(|name| Ok(name.into())));
        let view = devices::View::from(arm.clone());
        assert_eq!(view.get_profile(), Ok("view".into()));
        let begun = arm.begin_get_profile_().and_then(|reply| reply.wait());
        assert_eq!(begun, Ok("view".into()));

        let both = root
            .serve(devices::BothSkeleton::new(Robot))
            .expect("served");
        let both = devices::Both::unchecked_narrow(&both);
        assert_eq!(both.full_name(), Ok("fullName".into()));
        assert_eq!(both.full_name_(), Ok("full_name".into()));
        let named: Arc<dyn devices::Named> = Arc::new(both);
        assert_eq!(named.full_name(), Ok("full_name".into()));
    });
}

#[test]
fn parts_of_one_name_are_told_apart() {
    let entry = devices::Entry {
        text: "",
        max_size: 1,
        max_size_: 2,
    };
    assert!(entry.max_size < entry.max_size_);
    assert_ne!(devices::Kind::DarkRed, devices::Kind::DarkRed_);
    assert_ne!(devices::Choice::OnTime(1), devices::Choice::OnTime_("1"));
    assert_ne!(devices::Flags::IS_OPEN, devices::Flags::IS_OPEN_);
    let fields = devices::Fields::default()
        .with_bits(1)
        .with_x(2)
        .with_with_x(3);
    assert_eq!((fields.bits_(), fields.x(), fields.with_x_()), (1, 2, 3));
    let (wide, narrow): (devices::TdOa, devices::TdOa_) = (1_i32, 2_i16);
    assert_eq!(
        devices::TOP_LEVEL + devices::TOP_LEVEL_,
        wide + i32::from(narrow)
    );
    let point = devices::PointState { on_x: 1, on_x_: 2 };
    assert!(point.on_x < point.on_x_);
}

#[test]
fn files_of_one_name_are_modules_of_two_names() {
    use chronorb_generated_tests::shared::{m, types, y_types};
    let x = types::x::P { a: 1, text: "t" };
    let both = m::m::Both {
        first: x,
        second: y_types::y::P { inner: x },
    };
    assert_eq!(both.first, both.second.inner);
}
