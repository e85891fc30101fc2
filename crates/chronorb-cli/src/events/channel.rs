//! The channel that a command calls, and the errors of all commands.

use std::io;
use std::path::PathBuf;

use chronorb_orb::{InitError, LastFailure, NotifyError, OrbConfig, SystemException};
use chronorb_rt::SpawnError;
use chronorb_rtec::idl::rtec_event_channel_admin::EventChannel;
use chronorb_rtec::{ChannelChange, ServeError};
use clap::Args;
use thiserror::Error;

use crate::client::{Client, ClientError, STANDARD_INPUT, text};
use crate::listen::cause;
use crate::ns::{NameServer, NsError, ServerArguments};

/// The name of a channel: its initial reference, and its usual name in a name server.
pub(super) const NAME: &str = "EventService";

/// The channel of a command.
#[derive(Args, Clone, Debug)]
pub(crate) struct ChannelArguments {
    /// The channel: IOR:, corbaloc:, corbaname:, file:, a file, or - for standard input. By default
    /// it is looked up in the name server.
    #[arg(long, value_name = "REF")]
    channel: Option<String>,

    /// The name of the channel in the name server.
    #[arg(long, value_name = "NAME", default_value = NAME, conflicts_with = "channel")]
    name: String,

    #[command(flatten)]
    server: ServerArguments,
}

impl ChannelArguments {
    /// Reads a reference from standard input, if that is stated, so that the channel can be found
    /// more than once.
    pub(super) fn read_input(&mut self) -> Result<(), EventsError> {
        if self.channel.as_deref() == Some(STANDARD_INPUT) {
            self.channel = Some(text(STANDARD_INPUT)?);
        }
        Ok(())
    }
}

/// A channel, and the ORB of the calls to it.
pub(super) struct RemoteChannel {
    pub(super) client: Client,
    pub(super) channel: EventChannel,
}

impl RemoteChannel {
    /// Finds the channel.
    pub(super) fn connect(
        arguments: &ChannelArguments,
        config: OrbConfig,
    ) -> Result<Self, EventsError> {
        let (client, object) = match &arguments.channel {
            Some(reference) => {
                let timeout = arguments.server.timeout(&config);
                let client = Client::new(config, timeout)?;
                let object = client.object(reference)?;
                (client, object)
            }
            None => {
                let names = NameServer::connect(&arguments.server, config)?;
                let object = names.resolve_waiting(&arguments.name, arguments.server.wait())?;
                (names.into_client(), object)
            }
        };
        let channel = EventChannel::narrow(&object);
        let channel = channel.map_err(|exception| client.failed("the channel", exception))?;
        let channel = channel.ok_or(EventsError::NotChannel)?;
        Ok(Self { client, channel })
    }

    /// Returns a change as text, with the cause of a failure of this thread's last call.
    pub(super) fn describe(&self, change: &ChannelChange) -> String {
        match change {
            ChannelChange::Silent(exception) => {
                format!(
                    "the channel does not answer: {}",
                    self.client.cause(*exception)
                )
            }
            change => change.to_string(),
        }
    }

    /// Converts an exception of a call.
    pub(super) fn failed(&self, subject: &str, exception: SystemException) -> EventsError {
        self.client.failed(subject, exception).into()
    }
}

/// A command of `chronorb events` failed.
#[derive(Debug, Error)]
pub(crate) enum EventsError {
    #[error(transparent)]
    Init(#[from] InitError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Names(#[from] NsError),
    #[error("the event channel cannot serve: {}", cause(.0, .1.as_deref()))]
    Serve(ServeError, Option<Box<LastFailure>>),
    #[error("{0}")]
    System(#[from] SystemException),
    #[error("the event channel is not bound: {0}")]
    Bind(NsError),
    #[error("the binding of the event channel stays: {0}")]
    Unbind(NsError),
    #[error("the object is no event channel (RtecEventChannelAdmin::EventChannel)")]
    NotChannel,
    #[error("the channel is not chronorb's: it does not tell its state")]
    NotMonitored,
    #[error("the channel is not chronorb's: its consumers have no queues")]
    NoQueues,
    #[error(
        "the basic notation has no nested groups: use one group of events, or --notation prefix"
    )]
    NestedGroups,
    #[error("the scheduling service is not reached: {0}")]
    Scheduler(SystemException),
    #[error("the object is no scheduling service (RtecScheduler::Scheduler)")]
    NotScheduler,
    #[error("the channel returned no object")]
    Nil,
    #[error("the channel refuses the connection: {0}")]
    Refused(String),
    #[error("the channel has disconnected this consumer")]
    Disconnected,
    #[error("{0}\nWith --reconnect the command subscribes again.")]
    Lost(String),
    #[error("{}: {source}", .file.display())]
    File { file: PathBuf, source: io::Error },
    #[error(transparent)]
    Thread(#[from] SpawnError),
    #[error("systemd cannot be told that the channel is ready: {0}")]
    Ready(#[from] NotifyError),
    #[error("nothing can be written: {0}")]
    Output(#[from] io::Error),
}
