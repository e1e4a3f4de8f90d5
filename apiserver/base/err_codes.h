/* One row a code: name, HTTP status, Status.reason, whether a caller may simply try again.
 * An empty reason is what kube-apiserver answers for errors that are no Status inside it.
 * Included several times with a different ERR_ROW; source of codes and reasons: apimachinery's metav1 StatusReason. */
ERR_ROW(ERR_BAD_REQUEST, 400, "BadRequest", false)
ERR_ROW(ERR_UNAUTHORIZED, 401, "Unauthorized", false)
ERR_ROW(ERR_FORBIDDEN, 403, "Forbidden", false)
ERR_ROW(ERR_NOT_FOUND, 404, "NotFound", false)
ERR_ROW(ERR_METHOD_NOT_ALLOWED, 405, "MethodNotAllowed", false)
ERR_ROW(ERR_NOT_ACCEPTABLE, 406, "NotAcceptable", false)
ERR_ROW(ERR_ALREADY_EXISTS, 409, "AlreadyExists", false)
ERR_ROW(ERR_CONFLICT, 409, "Conflict", false)
ERR_ROW(ERR_EXPIRED, 410, "Expired", false)
ERR_ROW(ERR_TOO_LARGE, 413, "RequestEntityTooLarge", false)
ERR_ROW(ERR_UNSUPPORTED_MEDIA, 415, "UnsupportedMediaType", false)
ERR_ROW(ERR_INVALID, 422, "Invalid", false)
ERR_ROW(ERR_TOO_MANY, 429, "TooManyRequests", true)
ERR_ROW(ERR_INTERNAL, 500, "InternalError", false)
ERR_ROW(ERR_UNKNOWN, 500, "", false)             /* a 500 without a reason */
ERR_ROW(ERR_SERVER_TIMEOUT, 500, "ServerTimeout", true) /* storage did not answer in time */
ERR_ROW(ERR_UNDETERMINED, 500, "ServerTimeout", true) /* a write was sent and its outcome is not known */
ERR_ROW(ERR_UNAVAILABLE, 503, "ServiceUnavailable", true)
ERR_ROW(ERR_TIMEOUT, 504, "Timeout", true)
ERR_ROW(ERR_CANCELLED, 503, "ServiceUnavailable", true) /* we are shutting down */
