/* One row a code: name, HTTP status, Status.reason, whether a caller may simply try again.
 * An empty reason is what kube-apiserver answers for errors that are no Status inside it.
 * Included several times with a different ERR_ROW; source of codes and reasons: apimachinery's
 * metav1 StatusReason. */
ERR_ROW(ERR_BAD_REQUEST, 400, "BadRequest")
ERR_ROW(ERR_UNAUTHORIZED, 401, "Unauthorized")
ERR_ROW(ERR_FORBIDDEN, 403, "Forbidden")
ERR_ROW(ERR_NOT_FOUND, 404, "NotFound")
ERR_ROW(ERR_METHOD_NOT_ALLOWED, 405, "MethodNotAllowed")
ERR_ROW(ERR_NOT_ACCEPTABLE, 406, "NotAcceptable")
ERR_ROW(ERR_ALREADY_EXISTS, 409, "AlreadyExists")
ERR_ROW(ERR_CONFLICT, 409, "Conflict")
ERR_ROW(ERR_EXPIRED, 410, "Expired")
ERR_ROW(ERR_TOO_LARGE, 413, "RequestEntityTooLarge")
ERR_ROW(ERR_UNSUPPORTED_MEDIA, 415, "UnsupportedMediaType")
ERR_ROW(ERR_INVALID, 422, "Invalid")
ERR_ROW(ERR_TOO_MANY, 429, "TooManyRequests")
ERR_ROW(ERR_INTERNAL, 500, "InternalError")
ERR_ROW(ERR_UNKNOWN, 500, "")                     /* a 500 without a reason */
ERR_ROW(ERR_SERVER_TIMEOUT, 500, "ServerTimeout") /* storage did not answer in time */
ERR_ROW(ERR_UNDETERMINED, 500, "ServerTimeout") /* a write was sent and its outcome is not known */
ERR_ROW(ERR_UNAVAILABLE, 503, "ServiceUnavailable")
ERR_ROW(ERR_TIMEOUT, 504, "Timeout")
ERR_ROW(ERR_CANCELLED, 503, "ServiceUnavailable") /* we are shutting down */
