//! The body of a request, encoded once for many targets.

#![deny(clippy::disallowed_macros, clippy::disallowed_methods)]

use std::fmt;
use std::sync::Arc;

use chronorb_cdr::{CdrError, Encoder, Endian, Frame, TextForm};
use chronorb_giop::SystemException;

use crate::scope::{empty_frame, text_within};

/// The body of a request, encoded once and sent to many targets.
///
/// Clones share the octets. The body of a request of GIOP 1.2 begins at a multiple of 8 octets, so
/// one encoding serves all such targets whose text has the same [form](BodyForm).
///
/// # Example
/// ```no_run
/// # use chronorb_cdr::Encoder;
/// # use chronorb_orb::{EncodedBody, Object, Operation, SystemException};
/// # fn f(consumers: &[Object]) -> Result<(), SystemException> {
/// const PUSH: Operation = Operation::oneway("push");
/// let arguments = |e: &mut Encoder<'_>| e.write_octet_seq(&[1, 2, 3]);
/// let body = EncodedBody::new(&arguments)?;
/// for consumer in consumers {
///     consumer.invoke_oneway(&PUSH, &|e| body.write(e, &arguments))?;
/// }
/// # Ok(())
/// # }
/// ```
///
/// An [`Outbox`](crate::outbox::Outbox) sends it without a copy and without waiting.
#[derive(Clone)]
pub struct EncodedBody {
    octets: Arc<Frame>,
    form: BodyForm,
}

/// The form of the text in a body: what client and server have agreed on. By default it is UTF-8,
/// the form of all targets that are served by this ORB's kind.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct BodyForm(TextForm);

impl Default for BodyForm {
    fn default() -> Self {
        Self(text_within())
    }
}

impl BodyForm {
    pub(crate) fn of(text: TextForm) -> Self {
        Self(text)
    }
}

impl EncodedBody {
    /// Encodes arguments.
    ///
    /// # Errors
    /// The exception for an error of `arguments`.
    pub fn new(
        arguments: &dyn Fn(&mut Encoder<'_>) -> Result<(), CdrError>,
    ) -> Result<Self, SystemException> {
        let mut body = Self::empty();
        body.renew(arguments)?;
        Ok(body)
    }

    /// A body without octets, as of an operation without arguments.
    pub fn empty() -> Self {
        Self::in_form(BodyForm::default())
    }

    /// A body without octets. Arguments that it [encodes](Self::renew) later have this form.
    #[allow(clippy::disallowed_methods, reason = "once for each body")]
    pub fn in_form(form: BodyForm) -> Self {
        let octets = Arc::new(empty_frame());
        Self { octets, form }
    }

    /// Encodes other arguments. Allocates nothing if no clone is left and the memory is enough.
    ///
    /// # Errors
    /// The exception for an error of `arguments`. The body is empty then.
    pub fn renew(
        &mut self,
        arguments: &dyn Fn(&mut Encoder<'_>) -> Result<(), CdrError>,
    ) -> Result<(), SystemException> {
        if Arc::get_mut(&mut self.octets).is_none() {
            *self = Self::in_form(self.form);
        }
        let Some(frame) = Arc::get_mut(&mut self.octets) else {
            return Err(CdrError::OutOfMemory.into());
        };
        frame.clear();
        let encoder = Encoder::new(frame, Endian::NATIVE);
        let written = arguments(&mut encoder.with_text(self.form.0));
        if written.is_err() {
            frame.clear();
        }
        Ok(written?)
    }

    /// Writes the octets as the arguments of a request, or encodes `arguments` where the target
    /// needs another form: its requests are of GIOP 1.0 or 1.1, or its text has another one.
    ///
    /// # Errors
    /// Those of the encoder and of `arguments`.
    pub fn write(
        &self,
        e: &mut Encoder<'_>,
        arguments: &dyn Fn(&mut Encoder<'_>) -> Result<(), CdrError>,
    ) -> Result<(), CdrError> {
        let fits = e.text() == self.form.0
            && e.endian() == Endian::NATIVE
            && e.position().is_multiple_of(8);
        if fits {
            e.write_octets(self.as_slice())
        } else {
            arguments(e)
        }
    }

    /// The form of its text.
    pub fn form(&self) -> BodyForm {
        self.form
    }

    /// The octets.
    pub fn as_slice(&self) -> &[u8] {
        self.octets.as_slice()
    }

    /// The number of octets.
    pub fn len(&self) -> usize {
        self.octets.len()
    }

    /// Whether there are no octets.
    pub fn is_empty(&self) -> bool {
        self.octets.is_empty()
    }
}

impl fmt::Debug for EncodedBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EncodedBody({} octets)", self.len())
    }
}
