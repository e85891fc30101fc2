//! Equal answers of a server with each operation lookup.

use chronorb::config::OrbConfig;
use chronorb::prelude::*;

/// A test that serves the shapes of a module and calls every operation.
macro_rules! serves_all_operations {
    ($name:ident, $($shapes:tt)+) => {
        mod $name {
            use chronorb_generated_tests::$($shapes)+::*;

            use super::*;

            struct Servant;

            impl EmptyServant for Servant {}

            impl TopServant for Servant {
                fn on_top(&self, _: &Call<'_>, n: i32) -> Result<i32, SystemException> {
                    Ok(n)
                }
            }

            impl LeftServant for Servant {
                fn on_left(&self, _: &Call<'_>) -> Result<i32, SystemException> {
                    Ok(2)
                }
            }

            impl RightServant for Servant {
                fn on_right(&self, _: &Call<'_>) -> Result<i32, SystemException> {
                    Ok(3)
                }
            }

            impl BottomServant for Servant {
                fn at_bottom(&self, _: &Call<'_>) -> Result<i32, SystemException> {
                    Ok(4)
                }

                fn far(&self, _: &Call<'_>) -> Result<Option<Empty>, SystemException> {
                    Ok(None)
                }

                fn set_far(&self, _: &Call<'_>, _: Option<&Empty>) -> Result<(), SystemException> {
                    Ok(())
                }
            }

            #[test]
            fn serves_all_operations() {
                let (server, client) = (orb(), orb());
                let root = server.root_poa().expect("a root POA");
                root.manager().activate().expect("active");
                let import = |object: Object| {
                    let text = server.object_to_string(&object);
                    client.string_to_object(&text).expect("a reference")
                };
                let bottom = root.serve(BottomSkeleton::new(Servant)).expect("served");
                let bottom = Bottom::unchecked_narrow(&import(bottom));
                let empty = root.serve(EmptySkeleton::new(Servant)).expect("served");
                let empty = import(empty);

                assert_eq!(bottom.on_top(1), Ok(1));
                assert_eq!((bottom.on_left(), bottom.on_right()), (Ok(2), Ok(3)));
                assert_eq!((bottom.at_bottom(), bottom.far()), (Ok(4), Ok(None)));
                assert_eq!(bottom.set_far(None), Ok(()));

                let unknown = Holder::unchecked_narrow(bottom.as_object());
                let middle_part = outer::Middle {
                    which: outer::middle::Kind::One,
                    n: 0,
                };
                let outer = Outer {
                    middle_part,
                    text: "",
                };
                let error = unknown.hold(&outer).expect_err("no such operation");
                assert_eq!(error.kind, SystemExceptionKind::BadOperation);
                let error = Top::unchecked_narrow(&empty).on_top(1);
                let error = error.expect_err("no operation at all");
                assert_eq!(error.kind, SystemExceptionKind::BadOperation);
                for orb in [client, server] {
                    orb.shutdown(true).expect("shut down");
                }
            }
        }
    };
}

serves_all_operations!(perfect_hash, shapes);
serves_all_operations!(binary_search, shapes_by::binary_search);
serves_all_operations!(dynamic_hash, shapes_by::dynamic_hash);
serves_all_operations!(linear_search, shapes_by::linear_search);

fn orb() -> Orb {
    let mut args = ["-ORBListenEndpoints", "iiop://127.0.0.1:0"]
        .map(str::to_owned)
        .to_vec();
    let config = OrbConfig::read(&mut args).expect("the options are correct");
    Orb::with_config(config).expect("an ORB")
}
